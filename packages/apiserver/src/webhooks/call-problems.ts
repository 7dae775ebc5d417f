/** Why a webhook gave no answer, in the words of the reference's client (net/http, client-go rest, apimachinery api/errors). */
import { DeadlineError } from "@longshore/runtime/basics";
import { parseJson } from "../api/json.ts";
import type { WebhookReply } from "./http-webhook-client.ts";

interface NodeError extends Error {
  readonly code?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly host?: string;
  readonly cert?: { readonly subjectaltname?: string };
}

const unknownAuthority: ReadonlySet<string> = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_SIGNATURE_FAILURE",
]);

/** What went wrong with the connection or the call. */
export function callProblem(error: unknown): string {
  if (error instanceof DeadlineError) return "context deadline exceeded";
  const { code = "", address, port, hostname, host, cert, message } = error as NodeError;
  switch (code) {
    case "ECONNREFUSED":
      return `dial tcp ${address?.includes(":") ? `[${address}]` : address}:${port}: connect: connection refused`;
    case "ENOTFOUND":
      return `dial tcp: lookup ${hostname}: no such host`;
    case "ECONNRESET":
      return "EOF";
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return "x509: certificate has expired or is not yet valid";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `x509: certificate is valid for ${namesOf(cert?.subjectaltname)}, not ${host}`;
    default:
      return unknownAuthority.has(code) ? "x509: certificate signed by unknown authority" : message;
  }
}

function namesOf(altNames = ""): string {
  return altNames.replaceAll(/(?:DNS|IP Address):/g, "");
}

/** Texts of codes that mean the same, whichever server answers. */
const textOfCode: Readonly<Record<number, string>> = {
  400: "the server rejected our request for an unknown reason",
  401: "the server has asked for the client to provide credentials",
  404: "the server could not find the requested resource",
  405: "the server does not allow this method on the requested resource",
  409: "the server reported a conflict",
  422: "the server rejected our request due to an error in our request",
  429: "the server has received too many requests and has asked us to try again later",
  503: "the server is currently unable to handle the request",
  504: "the server was unable to return a response in the time allotted, but may still be processing the request",
};

/** Most characters of a foreign body in a message. */
const shownMax = 1024;

/** Why the answer is none, by its code; undefined where it is one. */
export function replyProblem({ status, body }: WebhookReply): string | undefined {
  if (status >= 200 && status <= 206) return undefined;
  const said = statusMessage(body);
  if (said !== undefined && status >= 500) return said.slice(0, shownMax);
  const known = textOfCode[status];
  if (known !== undefined) return known;
  const shown = body.trim().slice(0, shownMax);
  if (status === 403) return shown;
  if (status >= 500) {
    return `an error on the server (${JSON.stringify(shown)}) has prevented the request from succeeding`;
  }
  return `the server responded with the status code ${status} but did not return more information`;
}

/** The message of a Status of failure. */
function statusMessage(body: string): string | undefined {
  try {
    const { kind, status, message } = (parseJson(body) ?? {}) as Record<string, unknown>;
    return kind === "Status" && status === "Failure" && typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}
