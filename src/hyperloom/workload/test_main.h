// The main function of a test program whose tests start workers: they start this very program.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "hyperloom/workload/worker.h"

namespace hyperloom::workload {

inline int test_main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return run_worker(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace hyperloom::workload
