/**
 * Cuts lists that no rule looks at out of the text of an object before it is parsed: they are most of a pod and of a node, and
 * finding their ends takes a third of the time that parsing them does.
 *
 *     {"spec":{"volumes":[…],"containers":[{…},{…}],"nodeName":"n1"}}   ──►   {"spec":{"volumes":[…],"containers":[],"nodeName":"n1"}}
 *
 * An opening quote in JSON is never part of a string, so that the name before a list is a member's. What is wrong inside of a list
 * that is cut is not noticed.
 */

/** Members of these names are lists of which nothing is kept, wherever in an object they are. */
const UNREAD =
  /"(?:managedFields|containers|initContainers|ephemeralContainers|containerStatuses|initContainerStatuses|images|tolerations|sources)": *\[/g;

/** Shorter texts are parsed as they are. */
const textMin = 600;

/** The text of a JSON object without the lists that no rule looks at. */
export function withoutUnreadParts(text: string): string {
  if (text.length < textMin) return text;
  let kept = "";
  let from = 0;
  UNREAD.lastIndex = 0;
  while (UNREAD.test(text)) {
    const open = UNREAD.lastIndex - 1;
    const end = endOfList(text, open);
    if (end < 0) break;
    kept += text.slice(from, open + 1);
    from = end;
    UNREAD.lastIndex = end;
  }
  return from === 0 ? text : kept + text.slice(from);
}

/** Where the bracket stands that closes the list; -1 when there is none. */
function endOfList(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      at = text.indexOf('"', at + 1);
      while (at > 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
      if (at < 0) return -1;
    } else if (char === 0x5b || char === 0x7b) depth++;
    else if (char === 0x5d || char === 0x7d) {
      depth--;
      if (depth === 0) return at;
    }
  }
  return -1;
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes++;
  return backslashes % 2 === 1;
}
