/** AdmissionReviews: what webhooks are sent, and what their answers mean (apiserver plugin/webhook/request). */
import type { KubeObject } from "@longshore/kube";
import type { UserInfo } from "../api/api-request.ts";
import { parseJson, toJson } from "../api/json.ts";
import type { WebhookOperation } from "../registry/registry-context.ts";
import type { Webhook } from "./webhook.ts";

/** A kind or a resource, with its group and version. */
export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** Where a request points. */
export interface ReviewedResource extends GroupVersion {
  readonly kind: string;
  readonly kindGroup: string;
  readonly kindVersion: string;
  readonly resource: string;
  readonly subresource: string;
}

/** What a webhook is asked, apart from the version of the question. */
export interface ReviewQuestion {
  readonly operation: WebhookOperation;
  /** As the webhook's rules name it. */
  readonly as: ReviewedResource;
  /** As the client named it. */
  readonly requested: ReviewedResource;
  readonly namespace: string;
  readonly name: string;
  readonly user: UserInfo;
  readonly isDryRun: boolean;
  /** The options of the request: `CreateOptions` and others. */
  readonly options: KubeObject | undefined;
  /** In the version of `as`. */
  readonly object: KubeObject | undefined;
  readonly old: KubeObject | undefined;
}

/** The member `request` of an AdmissionReview. */
export function reviewRequest(uid: string, question: ReviewQuestion): Readonly<Record<string, unknown>> {
  const { as, requested, namespace, name, user, operation, isDryRun, options, object, old } = question;
  const kindOf = (of: ReviewedResource) => ({ group: of.kindGroup, version: of.kindVersion, kind: of.kind });
  const resourceOf = ({ group, version, resource }: ReviewedResource) => ({ group, version, resource });
  return {
    uid,
    kind: kindOf(as),
    resource: resourceOf(as),
    ...(as.subresource === "" ? {} : { subResource: as.subresource }),
    requestKind: kindOf(requested),
    requestResource: resourceOf(requested),
    ...(requested.subresource === "" ? {} : { requestSubResource: requested.subresource }),
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: user.groups,
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    },
    object: object ?? null,
    oldObject: old ?? null,
    dryRun: isDryRun,
    options: options ?? null,
  };
}

/** An AdmissionReview to send. */
export function reviewText(version: Webhook["reviewVersion"], request: object): string {
  return toJson({ kind: "AdmissionReview", apiVersion: `admission.k8s.io/${version}`, request });
}

/** What a webhook has answered. */
export interface ReviewAnswer {
  readonly allowed: boolean;
  /** Why it is not allowed: a meta/v1 Status, or parts of one. */
  readonly result: Readonly<Record<string, unknown>> | undefined;
  readonly warnings: readonly string[];
  /** A JSON patch, as text; undefined where nothing is to be changed. */
  readonly patch: string | undefined;
  readonly patchType: string;
}

/** What a webhook has answered cannot be read. */
export class ReviewProblem extends Error {
  override readonly name = "ReviewProblem";
}

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Reads the body of an answer. @throws ReviewProblem */
export function readReview(
  text: string,
  uid: string,
  { isMutating, reviewVersion }: Pick<Webhook, "isMutating" | "reviewVersion">,
): ReviewAnswer {
  let review: unknown;
  try {
    review = parseJson(text);
  } catch (error) {
    throw new ReviewProblem(`the body is no JSON: ${(error as Error).message}`);
  }
  if (!isObject(review)) throw new ReviewProblem("the body is no AdmissionReview");
  const { response } = review;
  if (!isObject(response)) throw new ReviewProblem("webhook response was absent");
  if (reviewVersion === "v1") checkForm(review, response, uid, isMutating);
  const { allowed, status, warnings, patch, patchType } = response;
  return {
    allowed: allowed === true,
    result: isObject(status) ? status : undefined,
    warnings: Array.isArray(warnings) ? warnings.filter((one) => typeof one === "string") : [],
    patch:
      typeof patch === "string" && patch !== "" ? Buffer.from(patch, "base64").toString("utf8") : undefined,
    patchType: reviewVersion === "v1" ? String(patchType ?? "") : "JSONPatch",
  };
}

/** What v1 asks of an answer, and v1beta1 did not (request/admissionreview.go VerifyAdmissionResponse). */
function checkForm(review: Json, response: Json, uid: string, isMutating: boolean): void {
  const { apiVersion, kind } = review;
  if (apiVersion !== "admission.k8s.io/v1" || kind !== "AdmissionReview") {
    const given = `${apiVersion ?? "/"}, Kind=${kind ?? ""}`;
    throw new ReviewProblem(
      `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${given}`,
    );
  }
  if (response.uid !== uid) {
    const given = JSON.stringify(String(response.uid ?? ""));
    throw new ReviewProblem(`expected response.uid=${JSON.stringify(uid)}, got ${given}`);
  }
  const hasPatch = typeof response.patch === "string" && response.patch !== "";
  const { patchType = null } = response;
  if (!isMutating) {
    if (hasPatch) throw new ReviewProblem("validating webhook may not return response.patch");
    if (patchType !== null) throw new ReviewProblem("validating webhook may not return response.patchType");
    return;
  }
  if (hasPatch && patchType === null) {
    throw new ReviewProblem("webhook returned response.patch but not response.patchType");
  }
  if (!hasPatch && patchType !== null) {
    throw new ReviewProblem("webhook returned response.patchType but not response.patch");
  }
  if (patchType === "") throw new ReviewProblem('webhook returned invalid response.patchType of ""');
}
