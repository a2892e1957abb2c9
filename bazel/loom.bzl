"""Loom modules in Bazel, over installed programs.

The programs are those that PATH finds: `bazel build --action_env=PATH ...`.

    loom_library(name = "kernels", srcs = ["kernels.loom"])
    loom_command_binary(
        name = "model",
        srcs = ["model.loom"],
        deps = [":kernels"],
        roots = ["two_layer"],
        targets = ["x86_64"],
    )

`loom_command_binary` writes <name>/manifest.json, <name>/commands/*.loomcmd,
<name>/requests/*.loombc and, for each target, <name>/<target>/*.o, as one folder.
"""

LoomInfo = provider(doc = "Modules that a link may draw on.", fields = ["modules"])

def _closure(ctx):
    return depset(ctx.files.srcs, transitive = [dep[LoomInfo].modules for dep in ctx.attr.deps])

def _loom_library_impl(ctx):
    # Checked, but kept as they are: a link takes sources and bytecode alike.
    stamp = ctx.actions.declare_file(ctx.label.name + ".verified")
    arguments = ctx.actions.args()
    arguments.add(stamp)
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run_shell(
        inputs = ctx.files.srcs,
        outputs = [stamp],
        arguments = [arguments],
        command = "stamp=$1; shift; for f in \"$@\"; do loom-format \"$f\" >/dev/null || exit; done; : >$stamp",
        use_default_shell_env = True,
        mnemonic = "LoomVerify",
    )
    return [DefaultInfo(files = depset([stamp])), LoomInfo(modules = _closure(ctx))]

loom_library = rule(
    implementation = _loom_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".loom", ".loombc"]),
        "deps": attr.label_list(providers = [LoomInfo]),
    },
)

_COMPILE = """
set -e
folder=$1; targets=$2; shift 2
loom-compile "$@" --format=loom-command --output="$folder/manifest.json" \
  --emit-command-artifacts="$folder/commands" --emit-kernel-requests="$folder/requests"
for target in $targets; do
  mkdir -p "$folder/${target//:/-}"
  for request in "$folder"/requests/*.loombc; do
    [ -e "$request" ] || continue
    loom-compile "$request" --target="$target" \
      --output="$folder/${target//:/-}/$(basename "$request" .loombc).o"
  done
done
"""

def _loom_command_binary_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    libraries = depset(transitive = [dep[LoomInfo].modules for dep in ctx.attr.deps])
    arguments = ctx.actions.args()
    arguments.add(folder.path)
    arguments.add(" ".join(ctx.attr.targets))
    arguments.add_all(ctx.files.srcs)
    arguments.add_all(libraries, format_each = "--library=%s")
    arguments.add_all(ctx.attr.roots, format_each = "--root=@%s")
    arguments.add_all(ctx.attr.config, format_each = "--config=%s")
    arguments.add_all(ctx.attr.specialize, format_each = "--specialize=%s")
    ctx.actions.run_shell(
        inputs = depset(ctx.files.srcs, transitive = [libraries]),
        outputs = [folder],
        arguments = [arguments],
        command = _COMPILE,
        use_default_shell_env = True,
        mnemonic = "LoomCommand",
    )
    return [DefaultInfo(files = depset([folder]))]

loom_command_binary = rule(
    implementation = _loom_command_binary_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".loom", ".loombc"], mandatory = True),
        "deps": attr.label_list(providers = [LoomInfo]),
        "roots": attr.string_list(doc = "without '@'"),
        "config": attr.string_list(doc = "key=value"),
        "specialize": attr.string_list(doc = "@root:name=value"),
        "targets": attr.string_list(doc = "such as x86_64"),
    },
)
