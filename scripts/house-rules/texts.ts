/** What no file of the repository holds: hosts that packages come from, and paths and documents outside the repository. */
import type { Finding } from "./source.ts";

const never: readonly { readonly pattern: RegExp; readonly message: string }[] = [
  {
    // Spelled in parts, so that this file keeps its own rule.
    pattern: new RegExp(
      `https?://[\\w.-]*(${["registry", "artifactory", "pkg\\.dev", "debian\\.org", "npmjs", "proxy\\.golang"].join("|")})`,
    ),
    message: "names a host that packages come from; the machine's own configuration says which",
  },
  {
    pattern: new RegExp(`(?<![\\w.}$*-])/(${["work", "root", "home/\\w+", "Users/\\w+"].join("|")})/`),
    message: "holds a path of one particular machine",
  },
  {
    pattern: new RegExp(`\\.\\./${"shared"}/`),
    message: "names something beside the checkout; a clone has only what is in the repository",
  },
  {
    pattern: new RegExp(
      [`\\b${"DES"}IGN\\b`, `\\b${"spec"} [a-z-]+\\.md\\b`, `\\b${"seed"} 0\\d\\d\\b`].join("|"),
    ),
    message:
      "names a document outside the repository: name one below docs/ with its section, or a public document by its title",
  },
];

/** Findings in one text file. */
export function forbiddenTexts(path: string, text: string): Finding[] {
  return text
    .split("\n")
    .flatMap((content, index) =>
      never
        .filter(({ pattern }) => pattern.test(content))
        .map(({ message }) => ({ path, line: index + 1, message })),
    );
}
