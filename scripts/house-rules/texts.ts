/**
 * What no file of the repository holds: hosts that packages come from, paths and documents outside the repository, and,
 * in TypeScript and Markdown, words that plain technical English has a better one for.
 */
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

/** The refused words with the plain ones. The dots keep them out of this file. */
const words: readonly (readonly [refused: string, plain: string])[] = [
  ["a·new", "again"],
  ["a·miss", "wrong"],
  ["wi·sh|wi·shes|wi·shed|wi·shing", "request, desired"],
  ["to·ld|te·ll|te·lls|te·lling", "report, name, say, emit, return, distinguish"],
  ["no·body|no·body's", "no client, no process, unknown"],
  ["some·body|some·body's", "a user, a client"],
  ["who·ever", "the client that, administrators who"],
  ["me·nd|me·nds|me·nded|me·nding", "fix, correct, restore"],
  ["tw·in|tw·ins", "equivalent, counterpart"],
  ["good·bye", "close"],
  ["gi·ve back|gi·ves back|gi·ven back|ga·ve back", "return, release"],
  ["in va·in", "without effect"],
  ["de·ed|de·eds", "action"],
  ["is aw·ay|are aw·ay", "is unreachable"],
  ["wh·om", "by which component, to which client"],
  ["be·ars", "tolerates, affects, has"],
  ["all the sa·me", "nevertheless, in any case"],
  ["ha·ve a say|ha·s a say", "contains text from, decides"],
  ["is no·ne of|are no·ne of", "is not one of"],
];

const capitalized = (word: string) => word.slice(0, 1).toUpperCase() + word.slice(1);

/** The word alone, as the beginning of an identifier, or capitalized within one. */
const refusedWords = words.map(([refused, plain]) => {
  const forms = refused.replaceAll("·", "").split("|");
  const capital = forms.map(capitalized);
  const pattern = `(?<![A-Za-z])(?:${[...forms, ...capital].join("|")})(?![a-z])|(?<=[a-z])(?:${capital.join("|")})(?![a-z])`;
  return { pattern: new RegExp(pattern), message: `says ${forms.join(", ")}: plain words are ${plain}` };
});

/** The user of that name on every Unix, which may be named in quotes. */
const unixUser = new RegExp(`(["'\`])${"no"}body\\1`, "g");

/** The patterns that hold for a file. */
function refusedIn(path: string): readonly { readonly pattern: RegExp; readonly message: string }[] {
  const isProse = /\.(ts|md)$/.test(path) && !/\/gen\//.test(path);
  return isProse ? [...never, ...refusedWords] : never;
}

/** Findings in one text file. */
export function forbiddenTexts(path: string, text: string): Finding[] {
  const refused = refusedIn(path);
  return text
    .split("\n")
    .flatMap((content, index) =>
      refused
        .filter(({ pattern }) => pattern.test(content.replaceAll(unixUser, "")))
        .map(({ message }) => ({ path, line: index + 1, message })),
    );
}
