/** The form of `--token-auth-file`: one holder a line, `token,user,uid,"group1,group2"` (CSV). Pure. */
import type { StaticToken } from "./token-authenticator.ts";

/** A line of the file that cannot be read; its text, which may hold a token, is not in the message. */
export class TokenFileError extends Error {
  override readonly name = "TokenFileError";
}

/** @throws TokenFileError naming the line */
export function parseTokenFile(text: string): readonly StaticToken[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    const fields = fieldsOf(line);
    const [token = "", name = "", uid = "", groups = ""] = fields ?? [];
    if (fields === undefined || fields.length < 3 || token === "" || name === "") {
      throw new TokenFileError(
        `line ${i + 1} of the token file: it must be token,user,uid and optionally "group1,group2"`,
      );
    }
    const list = groups.split(",").filter((group) => group !== "");
    return [{ token, user: { name, ...(uid === "" ? {} : { uid }), groups: list } }];
  });
}

/** The fields of one line; undefined when a quote is left open. */
function fieldsOf(line: string): readonly string[] | undefined {
  const fields: string[] = [];
  const pattern = /\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/y;
  for (;;) {
    const match = pattern.exec(line);
    if (match === null) return undefined;
    fields.push(match[1]?.replaceAll('""', '"') ?? (match[2] ?? "").trim());
    if (match[3] === "") return fields;
  }
}
