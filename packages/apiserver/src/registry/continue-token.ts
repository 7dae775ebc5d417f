/** Where the next page of a list begins, as clients carry it (apiserver, storage/continue.go). */
import { badRequest } from "../api/errors.ts";

/** A place in a list. */
export interface ContinueToken {
  /** The version of the list; undefined: the newest, for a list whose own version is gone. */
  readonly revision: number | undefined;
  /** Key of the last item given: its name, with the namespace before it where the list has several. */
  readonly after: string;
}

const apiVersion = "meta.k8s.io/v1";
const newest = -1;

/** The token as text. */
export function encodeContinue({ revision = newest, after }: ContinueToken): string {
  // The key that is the next possible one.
  return Buffer.from(JSON.stringify({ v: apiVersion, rv: revision, start: `${after}\0` })).toString(
    "base64url",
  );
}

/** @throws KubeApiError 400 for what this server has not made */
export function decodeContinue(text: string): ContinueToken {
  const { v, rv, start } = parsed(text);
  if (v !== apiVersion)
    throw invalidToken(`server does not recognize this encoded version ${JSON.stringify(v ?? "")}`);
  if (!Number.isSafeInteger(rv) || rv === 0 || (rv as number) < newest) {
    throw invalidToken(`incorrect encoded start resourceVersion (version ${apiVersion})`);
  }
  if (typeof start !== "string" || start === "")
    throw invalidToken(`empty start key (version ${apiVersion})`);
  return { revision: rv === newest ? undefined : (rv as number), after: start.replace(/\0$/, "") };
}

function parsed(text: string): { readonly v?: unknown; readonly rv?: unknown; readonly start?: unknown } {
  try {
    const token: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    if (typeof token === "object" && token !== null) return token;
  } catch {
    // One failure for all that cannot be read.
  }
  throw invalidToken("it is not a token of this server");
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}
