/** An admission webhook of a test: a real HTTPS server, whose answers the test gives. */
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createAuthority, issueCertificate, type KeyPair } from "../http/issue-certificate.ts";

/** The member `request` of an AdmissionReview, loosely. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind.
export type ReviewedRequest = Record<string, any>;

/** What the server answers: the member `response` without its uid, or whatever is to be sent in place of a review. */
export type WebhookAnswer =
  | { readonly response: object }
  | { readonly status?: number; readonly body: string }
  /** Nothing is answered until the caller ends the connection. */
  | "silence";

/** See above. */
export interface WebhookServer {
  readonly url: string;
  readonly port: number;
  /** For `caBundle`. */
  readonly caBundle: string;
  /** What was asked, in the order in which it came, with the path that it was asked at. */
  readonly asked: { readonly path: string; readonly apiVersion: string; readonly request: ReviewedRequest }[];
  /** Answers from now on. */
  answer(how: (request: ReviewedRequest, path: string) => WebhookAnswer | Promise<WebhookAnswer>): void;
  stop(): Promise<void>;
}

/** Lets everything be. */
export const allowing = (): WebhookAnswer => ({ response: { allowed: true } });

/** Starts one on a free port of the loopback address. @param hosts names and addresses of its certificate */
export async function startWebhookServer(
  hosts: readonly string[] = ["127.0.0.1", "localhost"],
): Promise<WebhookServer> {
  const now = new Date();
  const authority: KeyPair = await createAuthority("webhooks", now);
  const own = await issueCertificate(authority, { commonName: "webhook", hosts, now });
  let how: Parameters<WebhookServer["answer"]>[0] = allowing;
  const asked: WebhookServer["asked"] = [];
  const server = createServer({ cert: own.certificate, key: own.key }, (request, response) => {
    const handled = async () => {
      const { request: reviewed, apiVersion } = JSON.parse(await textOf(request));
      const path = request.url ?? "";
      asked.push({ path, apiVersion, request: reviewed });
      const answer = await how(reviewed, path);
      if (answer === "silence") return;
      if ("body" in answer) {
        response.writeHead(answer.status ?? 200, { "content-type": "text/plain" }).end(answer.body);
        return;
      }
      const review = {
        kind: "AdmissionReview",
        apiVersion,
        response: { uid: reviewed.uid, ...answer.response },
      };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(review));
    };
    handled().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    caBundle: Buffer.from(authority.certificate).toString("base64"),
    asked,
    answer(next) {
      how = next;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** A JSON patch as a webhook sends it. */
export function patching(steps: readonly object[]): WebhookAnswer {
  const patch = Buffer.from(JSON.stringify(steps)).toString("base64");
  return { response: { allowed: true, patchType: "JSONPatch", patch } };
}
