; Made by ./dev docs from the tables of the language.
(comment) @comment
(operation_name) @keyword
(value) @variable
(symbol) @function
(attribute) @attribute
(scalar_type) @type.builtin
(shaped_type) @type
(opaque_type) @type
(number) @number
(string) @string
(word) @property
