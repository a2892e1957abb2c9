// The process that builds and runs variants, on behalf of a bench in another one.
#pragma once

namespace hyperloom::workload {

// The hidden subcommand `hyperloom worker`: reads one JSON object a line from standard input and
// answers each with one line on standard output, until the input ends. What anything else in the
// process prints goes to standard error.
//
//   {"id", "op": "open", "description"}                 -> {"device", "parent"}
//   {"id", "op": "load", "name", "tree", "envs"}        -> {"content_hash", "kernels",
//   "build_seconds"}
//   {"id", "op": "throughput", "name", "seconds"}       -> {"value"}
//   {"id", "op": "kernel_ns", "name", "kernel", "issues"} -> {"value"}
//   {"id", "op": "compare", "name", "reference", "seed", "adversarial", "held_out"}
//        -> {"correct", "accuracy", "worst_error", "where", "reference"}
//   {"id", "op": "trace", "name"}                       -> {"dispatches"}
//   {"id", "op": "peaks"}                               -> {"peaks"}
//
// Each answer has the request's "id" and "ok"; a failed one has "error_class", "message" and
// "hint".
//
// For tests, HYPERLOOM_WORKER_FAULT=<op>:<fault> makes the next such request go wrong: "hang" never
// answers, "crash" dies of SIGSEGV, "garbage" answers with no JSON, "exit" ends without an answer.
// Returns the process's exit code.
int run_worker(int argc, char** argv);

}  // namespace hyperloom::workload
