#include "loom/api/loom_c.h"

extern uint32_t (*const version)(void);
uint32_t (*const version)(void) = loom_abi_version;
