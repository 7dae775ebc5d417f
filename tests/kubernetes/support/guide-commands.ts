/** The commands of a guide, as a reader would run them. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The scripts of the guide's blocks whose info string is `sh` and the tag, in their order. */
export function guideScripts(path: string, tag: string): readonly string[] {
  const text = readFileSync(`${root}${path}`, "utf8");
  const blocks = text.matchAll(new RegExp(`^\`\`\`sh ${tag}\\n([\\s\\S]*?)^\`\`\`$`, "gm"));
  return [...blocks].map(([, script = ""]) => script);
}
