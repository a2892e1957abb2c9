#include "hyperloom/workload/test_main.h"

int main(int argc, char** argv) { return hyperloom::workload::test_main(argc, argv); }
