/** Our API server and the real one, side by side: the same requests, and what of their answers must be the same. */
import { readFile } from "node:fs/promises";
import { expect } from "vitest";
import { type Answer, HttpsConnections } from "../../../packages/apiserver/src/testing/http.ts";
import { adminToken, serveForTest } from "../../../packages/apiserver/src/testing/serve.ts";
import { startControlPlane } from "./control-plane.ts";

export type Body = string | object | undefined;

/** The answers of both, as far as they are the same on any two servers. */
export type BothAnswers = Readonly<Record<"reference" | "ours", unknown>>;

/** See above. */
export interface BothServers {
  /** The unchanged answers. */
  answers(
    method: string,
    path: string,
    body?: Body,
    contentType?: string,
  ): Promise<{ readonly reference: Answer; readonly ours: Answer }>;
  both(method: string, path: string, body?: Body, contentType?: string): Promise<BothAnswers>;
  /** The same answer, but for what is never the same. */
  expectSame(method: string, path: string, body?: Body, contentType?: string): Promise<void>;
  /** As {@link expectSameWords}, by another user: both administrators act as that one. */
  expectSameWordsAs(user: string, method: string, path: string, body?: Body): Promise<void>;
  /** The same code and, of what is refused, the same words. Gives the unchanged answers. */
  expectSameWords(
    method: string,
    path: string,
    body?: Body,
    contentType?: string,
  ): Promise<{ readonly reference: Answer; readonly ours: Answer }>;
  stop(): Promise<void>;
}

/** Starts both, ours as 1.20 and without its controllers. */
export async function startBothServers(): Promise<BothServers> {
  const kubernetes = await startControlPlane();
  const own = await serveForTest({ controllers: false, emulatedVersion: "1.20" });
  const theirs = new HttpsConnections(kubernetes.url, { ca: await readFile(kubernetes.caPath, "utf8") });
  const ours = new HttpsConnections(own.front.url, { ca: own.authority.certificate });
  const ask = (
    to: HttpsConnections,
    token: string,
    method: string,
    path: string,
    body: Body,
    contentType = "application/json",
    more: Readonly<Record<string, string>> = {},
  ) =>
    to.send({
      method,
      path,
      headers: { authorization: `Bearer ${token}`, "content-type": contentType, ...more },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  const answers: BothServers["answers"] = async (...request) => {
    const reference = await ask(
      theirs,
      kubernetes.adminToken,
      ...(request as [string, string, Body, string?]),
    );
    return { reference, ours: await ask(ours, adminToken, ...(request as [string, string, Body, string?])) };
  };
  const compared = async (of: (answer: Answer) => unknown, request: Parameters<BothServers["both"]>) => {
    const given = await answers(...request);
    return { reference: of(given.reference), ours: of(given.ours) };
  };
  return {
    answers,
    both: (...request) => compared(essence, request),
    async expectSame(...request) {
      const given = await compared(essence, request);
      expect(given.ours).toEqual(given.reference);
    },
    async expectSameWords(...request) {
      const given = await answers(...request);
      expect(words(given.ours)).toEqual(words(given.reference));
      return given;
    },
    async expectSameWordsAs(user, method, path, body) {
      const headers = { "impersonate-user": user };
      const reference = await ask(theirs, kubernetes.adminToken, method, path, body, undefined, headers);
      const answer = await ask(ours, adminToken, method, path, body, undefined, headers);
      expect(words(answer)).toEqual(words(reference));
    },
    async stop() {
      theirs.close();
      ours.close();
      await own.stop();
      await kubernetes.stop();
    },
  };
}

function words({ status, body }: Answer): unknown {
  const { message, kind } = JSON.parse(body.toString());
  return { status, ...(kind === "Status" ? { message } : {}) };
}

/** Of a failure the code, and of one of validation every cause; values in them are shown in the syntax of Go or of JSON. */
function essence(answer: Answer): unknown {
  const { status } = answer;
  const text = answer.body.toString();
  const body = text.startsWith("{") ? JSON.parse(text) : text;
  if (body.kind !== "Status") return { status, body: withoutNoise(body) };
  if (status !== 422) return { status, reason: body.reason };
  const causes = (body.details?.causes ?? []).map(
    ({ reason, field, message }: Record<string, string>) =>
      `${field}: ${reason}: ${message?.replace(/(value: )(?:"[^"]*"|[[{].*?[\]}](?=: |$)|(?:v1|core|resource)\..*?\}(?=: |$)|\[\]\w.*?\}(?=: ))/, "$1…")}`,
  );
  return { status, causes: [...new Set(causes)].sort() };
}

const noise = new Set(["uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"]);

/** The value without what is never the same on two servers, and without nulls. */
export function withoutNoise(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNoise);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([key, member]) => !noise.has(key) && member !== null);
  return Object.fromEntries(members.map(([key, member]) => [key, withoutNoise(member)]));
}
