/** The `longshore translate` command by itself, reporting what it used on descriptor 3. */

import { writeSync } from "node:fs";
import { Command } from "commander";
import { registerTranslateCommand } from "../../packages/cli/src/commands/register-translate-command.ts";

const program = new Command("longshore");
registerTranslateCommand(program);
await program.parseAsync(process.argv);
writeSync(3, JSON.stringify(process.resourceUsage()));
