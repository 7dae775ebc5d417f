/**
 * What reading and parsing alone cost: `live` lists every page from the server, `offline` reads every file; both parse
 * and keep nothing. Arguments: mode, where the server is (JSON) or the directory, and the paths to list. Reports what it used on descriptor 3.
 */
import { readdirSync, readFileSync, writeSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, get } from "node:https";
import { join } from "node:path";

const [mode, where = "", ...paths] = process.argv.slice(2);
let objects = 0;

async function live(): Promise<void> {
  const { port, ca } = JSON.parse(where) as { port: number; ca: string };
  const agent = new Agent({ keepAlive: true, ca });
  const answerOf = (url: string): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => get(url, { agent }, resolve).on("error", reject));
  for (const path of paths) {
    let token: string | undefined = "";
    while (token !== undefined) {
      const chunks: Buffer[] = [];
      const answer = await answerOf(`https://127.0.0.1:${port}${path}?limit=500&continue=${token}`);
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      token = parsed(Buffer.concat(chunks));
    }
  }
  agent.destroy();
}

function offline(): void {
  for (const entry of readdirSync(where, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) parsed(readFileSync(join(entry.parentPath, entry.name)));
  }
}

function parsed(bytes: Buffer): string | undefined {
  const page = JSON.parse(bytes.toString()) as { metadata: { continue?: string }; items: readonly object[] };
  objects += page.items.length;
  return page.metadata.continue;
}

if (mode === "live") await live();
else offline();
writeSync(3, JSON.stringify({ ...process.resourceUsage(), objects }));
