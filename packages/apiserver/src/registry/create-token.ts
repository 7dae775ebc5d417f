/** POST to a service account's `token`: issues a token (core/serviceaccount/storage TokenREST). */

import type { KubeObject, Stored } from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import type { ObjectAnswer } from "../api/api-request.ts";
import {
  badRequest,
  conflict,
  type FieldProblem,
  invalid,
  invalidValue,
  methodNotSupported,
  notFound,
} from "../api/errors.ts";
import { own } from "../api/own.ts";
import type { BoundObject } from "../authentication/service-account-tokens.ts";
import { decodeObject } from "../schema/decode-object.ts";
import { bodyOfKind } from "./body-of-kind.ts";
import { existing, groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";

/** What a TokenRequest asks for. */
export interface TokenRequestObject extends KubeObject {
  readonly spec?: {
    readonly audiences?: readonly string[];
    readonly expirationSeconds?: number;
    readonly boundObjectRef?: BoundObjectRef | null;
  };
}

interface BoundObjectRef {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** Seconds. */
const lifetimeDefault = 3600;
const lifetimeMin = 600;
const lifetimeMax = 2 ** 32;

/** The body as a TokenRequest. @throws KubeApiError 400 */
export function tokenRequestOf(request: KindRequest): TokenRequestObject {
  const body = bodyOfKind(request, "TokenRequest");
  return decodeObject("authentication.k8s.io", "TokenRequest", body) as TokenRequestObject;
}

/** Issues a token of a service account. */
export function createToken(context: RegistryContext, request: KindRequest): ObjectAnswer {
  if (request.verb !== "create") throw methodNotSupported(groupResource(request.of), request.verb);
  const account = existing(request);
  const asked = tokenRequestOf(request);
  const { tokens } = context;
  const { audiences: given = [], expirationSeconds = lifetimeDefault, boundObjectRef } = asked.spec ?? {};
  const audiences = given.length === 0 ? [tokens.audience] : given;
  refuse(lifetimeProblems(expirationSeconds));
  const bound = boundObject(context, account, boundObjectRef ?? undefined);
  const { token, expires } = tokens.issue({
    account,
    audiences,
    lifetimeSeconds: expirationSeconds,
    ...(bound === undefined ? {} : { bound }),
  });
  const object = {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { creationTimestamp: null, ...asked.metadata },
    spec: { audiences, expirationSeconds, boundObjectRef: boundObjectRef ?? null },
    status: { token, expirationTimestamp: apiTime(expires) },
  };
  return { type: "object", code: 201, object: own(object as unknown as KubeObject) };
}

function lifetimeProblems(seconds: number): FieldProblem[] {
  const at = "spec.expirationSeconds";
  if (seconds < lifetimeMin) {
    return [invalidValue(at, seconds, "may not specify a duration less than 10 minutes")];
  }
  if (seconds <= lifetimeMax) return [];
  return [invalidValue(at, seconds, "may not specify a duration larger than 2^32 seconds")];
}

function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid("authentication.k8s.io", "TokenRequest", "", problems);
}

const tableOf: Readonly<Record<string, string>> = { Pod: "pods", Secret: "secrets", Node: "nodes" };

function boundObject(
  context: RegistryContext,
  account: Stored,
  ref: BoundObjectRef | undefined,
): BoundObject | undefined {
  if (ref === undefined) return undefined;
  const { kind = "", apiVersion = "", name = "", uid = "" } = ref;
  const table = apiVersion === "v1" ? tableOf[kind] : undefined;
  if (table === undefined || (kind === "Node" && !context.version.has("tokensBoundToNodes"))) {
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
  }
  const namespace = kind === "Node" ? "" : (account.metadata.namespace ?? "");
  const object = context.store.table(table).get(namespace, name);
  if (object === undefined) throw notFound({ group: "", resource: table }, name);
  if (uid !== "" && uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: "", resource: kind }, name, why);
  }
  if (kind === "Pod") {
    const pod = object as Stored & { spec?: { serviceAccountName?: string } };
    const runsAs = pod.spec?.serviceAccountName ?? "";
    if (runsAs !== account.metadata.name) {
      throw badRequest(
        `cannot bind token for serviceaccount "${account.metadata.name}" to pod running with different serviceaccount name.`,
      );
    }
  }
  return { kind: kind as BoundObject["kind"], object };
}
