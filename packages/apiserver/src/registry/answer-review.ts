/** Answers reviews: kinds that are never stored (authorization.k8s.io and authentication.k8s.io). */
import type { KubeObject } from "@longshore/kube";
import type { ObjectAnswer, UserInfo } from "../api/api-request.ts";
import {
  badRequest,
  type FieldProblem,
  invalid,
  invalidValue,
  methodNotSupported,
  unknownResource,
} from "../api/errors.ts";
import { own } from "../api/own.ts";
import type { Attributes } from "../authorization/authorizer.ts";
import { groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";
import { bodyObject } from "./write.ts";

interface AccessSpec {
  readonly resourceAttributes?: {
    readonly verb?: string;
    readonly group?: string;
    readonly version?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly nonResourceAttributes?: { readonly path?: string; readonly verb?: string };
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly uid?: string;
}

type Review<S> = KubeObject & { readonly spec?: S };

type Answer = (context: RegistryContext, request: KindRequest, review: KubeObject) => object;

const answers: Readonly<Record<string, Answer>> = {
  SelfSubjectAccessReview: selfAccess,
  SubjectAccessReview: (context, _request, review) => access(context, review),
  LocalSubjectAccessReview: localAccess,
  SelfSubjectRulesReview: selfRules,
  TokenReview: tokenReview,
  SelfSubjectReview: ({ version: _v }, { user }) => ({ userInfo: shownUser(user) }),
};

/** POST of a review: the review with its answer in `status`. */
export function answerReview(context: RegistryContext, request: KindRequest): ObjectAnswer {
  if (request.verb !== "create") throw methodNotSupported(groupResource(request.of), request.verb);
  const answer = answers[request.of.kind];
  if (answer === undefined) throw unknownResource();
  const review = bodyObject(request);
  const { version, of } = request;
  const status = answer(context, request, review);
  const { status: _given, ...rest } = review as KubeObject & { status?: unknown };
  const object = {
    ...rest,
    apiVersion: `${of.group}/${version}`,
    kind: of.kind,
    metadata: { creationTimestamp: null, ...review.metadata },
    status,
  };
  return { type: "object", code: 201, object: own(object as unknown as KubeObject) };
}

function selfAccess(context: RegistryContext, { user }: KindRequest, review: KubeObject): object {
  const spec = specOf<AccessSpec>(review);
  refuse(attributeProblems(spec));
  return decide(context, user, spec);
}

function access(context: RegistryContext, review: KubeObject): object {
  const spec = specOf<AccessSpec>(review);
  const problems = attributeProblems(spec);
  if ((spec.user ?? "") === "" && (spec.groups ?? []).length === 0) {
    problems.push(invalidValue("spec.user", "", "at least one of user or group must be specified"));
  }
  const { name = "", generateName = "", labels, annotations } = review.metadata ?? {};
  if (name !== "" || generateName !== "" || labels !== undefined || annotations !== undefined) {
    problems.push(invalidValue("metadata", review.metadata, "must be empty"));
  }
  refuse(problems);
  const { user = "", groups = [], extra, uid } = spec;
  const who: UserInfo = {
    name: user,
    groups,
    ...(extra === undefined ? {} : { extra }),
    ...(uid === undefined ? {} : { uid }),
  };
  return decide(context, who, spec);
}

function localAccess(context: RegistryContext, { namespace = "" }: KindRequest, review: KubeObject): object {
  const spec = specOf<AccessSpec>(review);
  const problems: FieldProblem[] = [];
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (resourceAttributes !== undefined && (resourceAttributes.namespace ?? "") !== namespace) {
    const why = "must match metadata.namespace";
    problems.push(invalidValue("spec.resourceAttributes.namespace", resourceAttributes.namespace ?? "", why));
  }
  if (nonResourceAttributes !== undefined) {
    const why = "disallowed on this kind of request";
    problems.push(invalidValue("spec.nonResourceAttributes", nonResourceAttributes, why));
  }
  refuse(problems);
  const { namespace: _n, ...metadata } = review.metadata ?? {};
  return access(context, { ...review, metadata });
}

function selfRules(context: RegistryContext, { user }: KindRequest, review: KubeObject): object {
  const { namespace = "" } = specOf<{ namespace?: string }>(review);
  if (namespace === "") throw badRequest("no namespace on request");
  const { rules, problems } = context.rules.rulesFor(user, namespace);
  return {
    resourceRules: rules
      .filter((rule) => (rule.resources ?? []).length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames === undefined ? {} : { resourceNames }),
      })),
    nonResourceRules: rules
      .filter((rule) => (rule.nonResourceURLs ?? []).length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete: problems.length > 0,
    ...(problems.length === 0 ? {} : { evaluationError: problems.join(", ") }),
  };
}

function tokenReview(context: RegistryContext, _request: KindRequest, review: KubeObject): object {
  const { token = "", audiences = [] } = specOf<{ token?: string; audiences?: readonly string[] }>(review);
  if (token === "") throw badRequest("token is required for TokenReview in authentication");
  const { tokens } = context;
  const asked = audiences.length === 0 ? [tokens.audience] : audiences;
  const found = tokens.authenticateToken(token, asked);
  if ("problem" in found) return { user: {}, error: found.problem };
  return { authenticated: true, user: shownUser(found.user), audiences: found.audiences };
}

function shownUser({ name, uid, groups, extra }: UserInfo): object {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra === undefined ? {} : { extra }),
  };
}

function specOf<S>(review: KubeObject): S {
  return (review as Review<S>).spec ?? ({} as S);
}

function decide(context: RegistryContext, user: UserInfo, spec: AccessSpec): object {
  const { allowed, reason } = context.authorizer.authorize(attributesOf(user, spec));
  return { allowed, ...(reason === "" ? {} : { reason }) };
}

function attributesOf(user: UserInfo, { resourceAttributes, nonResourceAttributes }: AccessSpec): Attributes {
  if (resourceAttributes === undefined) {
    const { verb = "", path = "" } = nonResourceAttributes ?? {};
    return { user, verb, path };
  }
  const { verb = "", group = "", resource = "", ...rest } = resourceAttributes;
  return { user, verb, group, resource, ...rest };
}

function attributeProblems(spec: AccessSpec): FieldProblem[] {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined) {
    const why = "cannot be specified in combination with resourceAttributes";
    return [invalidValue("spec.nonResourceAttributes", nonResourceAttributes, why)];
  }
  if (resourceAttributes !== undefined || nonResourceAttributes !== undefined) return [];
  const why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
  return [invalidValue("spec.resourceAttributes", "null", why)];
}

/** The reference names no kind in these failures. */
function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length === 0) return;
  const failure = invalid("authorization.k8s.io", "", "", problems);
  throw failure;
}
