/** What parsing and writing JSON lines costs with nothing done between, reporting like the command. */

import { createReadStream, writeSync } from "node:fs";
import { createInterface } from "node:readline";

let lines: string[] = [];
for await (const line of createInterface({ input: createReadStream(process.argv[2] as string) })) {
  lines.push(JSON.stringify(JSON.parse(line)));
  if (lines.length < 200) continue;
  await new Promise((resolve) => process.stdout.write(`${lines.join("\n")}\n`, resolve));
  lines = [];
}
process.stdout.write(`${lines.join("\n")}\n`);
writeSync(3, JSON.stringify(process.resourceUsage()));
