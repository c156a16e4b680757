/* The commands, one file each. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/options.h"

extern const command command_run, command_demo, command_verify, command_probe, command_bench, command_inspect, command_tokenize;

#endif
