/**
 * HTTPS requests to webhooks. Certificates are always checked: against the webhook's bundle or, where it has none, the
 * authorities of the system. Redirects are not followed, answers are read to a limit, and so many calls at most are under
 * way at one time; others wait, within their own time.
 */
import type { ClientRequest } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import type { WebhookAddress } from "./webhook-address.ts";

/** One call. */
export interface WebhookCall {
  readonly address: WebhookAddress;
  /** PEM. */
  readonly ca: string | undefined;
  /** What the certificates and connections of the call belong to: calls of the same key share connections. */
  readonly key: string;
  readonly body: string;
  readonly signal: AbortSignal;
}

/** What was answered. */
export interface WebhookReply {
  readonly status: number;
  readonly body: string;
}

/** Most calls under way at one time. */
const callsMax = 100;

/** Most bytes of an answer: a patch that writes the largest object again, in base64, with room to spare. */
const replyBytesMax = 8 * 1024 * 1024;

/** Most webhooks whose connections are kept. */
const agentsMax = 100;

/** How long a connection is kept that nothing uses, in milliseconds. */
const idleMs = 30_000;

/** Makes the calls of one server. */
export class WebhookClient {
  readonly #agents = new Map<string, Agent>();
  readonly #waiting = new Set<() => void>();
  #underWay = 0;

  /** @throws the reason of the signal; Error when no answer came, in the words of node */
  async call(call: WebhookCall): Promise<WebhookReply> {
    await this.#turn(call.signal);
    try {
      return await this.#send(call);
    } finally {
      this.#underWay--;
      const [next] = this.#waiting;
      next?.();
    }
  }

  /** Ends all connections. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    while (this.#underWay >= callsMax) {
      signal.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          this.#waiting.delete(proceed);
          signal.removeEventListener("abort", abort);
        };
        const proceed = () => {
          leave();
          resolve();
        };
        const abort = () => {
          leave();
          reject(signal.reason);
        };
        this.#waiting.add(proceed);
        signal.addEventListener("abort", abort, { once: true });
      });
    }
    signal.throwIfAborted();
    this.#underWay++;
  }

  #send({ address, ca, key, body, signal }: WebhookCall): Promise<WebhookReply> {
    const { url, connect, serverName } = address;
    return new Promise((resolve, reject) => {
      const sent: ClientRequest = httpsRequest({
        host: connect?.host ?? serverName,
        port: connect?.port ?? (url.port === "" ? 443 : Number(url.port)),
        // No name is announced for an address (RFC 6066); its certificate is checked in any case.
        ...(isIP(serverName) === 0 || connect !== undefined ? { servername: serverName } : {}),
        method: "POST",
        path: `${url.pathname}${url.search}`,
        headers: {
          host: url.host,
          "content-type": "application/json",
          accept: "application/json, */*",
          "content-length": Buffer.byteLength(body),
        },
        agent: this.#agent(key, ca),
        // Said here, so that no variable of the environment can switch it off.
        rejectUnauthorized: true,
        ...(ca === undefined ? {} : { ca }),
        signal,
      });
      sent.on("error", (error) => reject(signal.aborted ? signal.reason : error));
      sent.on("response", (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          chunks.push(chunk);
          if (bytes <= replyBytesMax) return;
          reject(new Error(`the answer is longer than ${replyBytesMax} bytes`));
          sent.destroy();
        });
        response.on("error", (error) => reject(signal.aborted ? signal.reason : error));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
        );
      });
      sent.end(body);
    });
  }

  #agent(key: string, ca: string | undefined): Agent {
    const full = `${key}\n${ca ?? ""}`;
    const agent =
      this.#agents.get(full) ?? new Agent({ keepAlive: true, timeout: idleMs, maxFreeSockets: 4 });
    // The one that was used last comes last.
    this.#agents.delete(full);
    this.#agents.set(full, agent);
    for (const [oldest, one] of this.#agents) {
      if (this.#agents.size <= agentsMax) break;
      one.destroy();
      this.#agents.delete(oldest);
    }
    return agent;
  }
}
