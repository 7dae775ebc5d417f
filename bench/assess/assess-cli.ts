/** The `longshore assess` command by itself, reporting what it used on descriptor 3. */
import { writeSync } from "node:fs";
import { Command } from "commander";
import { registerAssessCommands } from "../../packages/cli/src/commands/register-assess-commands.ts";

const program = new Command("longshore");
registerAssessCommands(program);
await program.parseAsync(process.argv);
const verdict = process.exitCode;
// The verdict is not what is measured.
process.exitCode = verdict === 3 ? 3 : 0;
writeSync(3, JSON.stringify({ ...process.resourceUsage(), verdict }));
