/** CertificateSigningRequest (kubernetes pkg/apis/certificates/validation, pkg/registry/certificates/certificates/strategy.go). */
import { X509Certificate } from "node:crypto";
import type { KubeObject, Stored } from "@longshore/kube";
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { labelProblems, subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import { type Loose, type LooseObject, withDefaults } from "./shaping.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};
const conditions = (object: KubeObject): readonly Loose[] => (object as LooseObject).status?.conditions ?? [];

const requestPattern =
  /^\s*-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----\s+(?:[A-Za-z0-9+/=]+\s+)+-----END (?:NEW )?CERTIFICATE REQUEST-----\s*$/;

const knownUsages: readonly string[] = [
  "any",
  "cert sign",
  "client auth",
  "code signing",
  "content commitment",
  "crl sign",
  "data encipherment",
  "decipher only",
  "digital signature",
  "email protection",
  "encipher only",
  "ipsec end system",
  "ipsec tunnel",
  "ipsec user",
  "key agreement",
  "key encipherment",
  "microsoft sgc",
  "netscape sgc",
  "ocsp signing",
  "s/mime",
  "server auth",
  "signing",
  "timestamping",
];

function problemsOf(object: KubeObject): FieldProblem[] {
  const { request = "", signerName = "", usages = [] } = spec(object);
  const problems: FieldProblem[] = [];
  if (!requestPattern.test(Buffer.from(request, "base64").toString("latin1"))) {
    const why = "PEM block type must be CERTIFICATE REQUEST";
    problems.push(invalidValue("spec.request", request, why));
  }
  if (usages.length === 0) problems.push(requiredValue("spec.usages", "usages must be provided"));
  for (const [i, usage] of (usages as readonly string[]).entries()) {
    if (!knownUsages.includes(usage))
      problems.push(unsupportedValue(`spec.usages[${i}]`, usage, knownUsages));
  }
  return [...problems, ...signerProblems(signerName), ...conditionProblems(object)];
}

/** A signer is a domain and a path in it: `example.com/signer`. */
function signerProblems(name: string): FieldProblem[] {
  if (name === "") return [requiredValue("spec.signerName", "signerName must be provided")];
  const slash = name.indexOf("/");
  if (slash < 0) {
    const why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalidValue("spec.signerName", name, why)];
  }
  const [domain, path] = [name.slice(0, slash), name.slice(slash + 1)];
  const isQualified = domain.includes(".");
  const ofDomain = [
    ...subdomainProblems(domain),
    ...(isQualified ? [] : ["should be a domain with at least two segments separated by dots"]),
  ];
  return [
    ...ofDomain.map((why) => invalidValue("spec.signerName", domain, why)),
    ...path
      .split(".")
      .flatMap((part) => labelProblems(part).map((why) => invalidValue("spec.signerName", path, why))),
  ];
}

/** It cannot be both approved and denied, and these and a failure stand. */
function conditionProblems(object: KubeObject): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const types = conditions(object).map(({ type }) => type);
  for (const [i, { type, status }] of conditions(object).entries()) {
    const at = `status.conditions[${i}]`;
    if (type && types.indexOf(type) < i) problems.push(duplicateValue(`${at}.type`, type));
    if (!type) problems.push(requiredValue(`${at}.type`));
    if (!status) problems.push(requiredValue(`${at}.status`));
    else if (lasting.includes(type) && status !== "True") {
      problems.push(unsupportedValue(`${at}.status`, status, ["True"]));
    }
    if (type === "Denied" && types.includes("Approved")) {
      problems.push(
        invalidValue(`${at}.type`, type, "Approved and Denied conditions are mutually exclusive"),
      );
    }
  }
  return problems;
}

const lasting = ["Approved", "Denied", "Failed"];

function updateProblems(next: KubeObject, old: Stored, isApproval: boolean): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const type of lasting) {
    const isOfType = (condition: Loose) => condition.type === type;
    if (conditions(old).some(isOfType) && !conditions(next).some(isOfType)) {
      const why = `updates may not remove a condition of type ${JSON.stringify(type)}`;
      problems.push(forbiddenValue("status.conditions", why));
    }
  }
  const isNew = ({ type }: Loose) => decisions.has(type) && !conditions(old).some((one) => one.type === type);
  if (!isApproval) {
    for (const { type } of conditions(next).filter(isNew)) {
      const why = `updates may not add a condition of type ${JSON.stringify(type)}`;
      problems.push(forbiddenValue("status.conditions", why));
    }
  }
  const [before, now] = [(old as LooseObject).status?.certificate, (next as LooseObject).status?.certificate];
  if (before && before !== now) {
    problems.push(
      forbiddenValue("status.certificate", "updates may not modify existing certificate content"),
    );
  }
  const why = now === before ? undefined : certificateProblem(Buffer.from(now ?? "", "base64"));
  if (why !== undefined) problems.push(invalidValue("status.certificate", "<certificate data>", why));
  return problems;
}

/** Why these bytes are no certificates in PEM; none at all are in order. What is between blocks is not looked at. */
function certificateProblem(pem: Buffer): string | undefined {
  if (pem.length === 0) return undefined;
  const blocks = pemBlocks(pem.toString("latin1"));
  for (const { type, content } of blocks) {
    spendTime();
    if (type !== "CERTIFICATE") {
      return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`;
    }
    if (content.includes(":")) return "no PEM block headers are permitted";
    if (!isCertificate(Buffer.from(content, "base64"))) return "x509: malformed certificate";
  }
  return blocks.length === 0 ? "must contain at least one CERTIFICATE PEM block" : undefined;
}

interface PemBlock {
  readonly type: string;
  readonly content: string;
}

/** The blocks of a PEM text, found line by line. */
function pemBlocks(text: string): readonly PemBlock[] {
  const found: PemBlock[] = [];
  let open: { readonly type: string; readonly lines: string[] } | undefined;
  for (const line of text.split("\n")) {
    spendTime();
    const [, edge, type = ""] = /^-----(BEGIN|END) ([^-]*)-----\s*$/.exec(line) ?? [];
    if (edge === "BEGIN") open = { type, lines: [] };
    else if (edge === undefined) open?.lines.push(line);
    else {
      if (open?.type === type) found.push({ type, content: open.lines.join("\n") });
      open = undefined;
    }
  }
  return found;
}

function isCertificate(der: Buffer): boolean {
  try {
    new X509Certificate(der);
    return true;
  } catch {
    return false;
  }
}

const decisions = new Set(["Approved", "Denied"]);

/** The kind as a write to `status` or to `approval` has it: an approval changes the conditions and nothing else. */
export function withDecisions(of: Kind, isApproval: boolean, now: string): Kind {
  return {
    ...of,
    prepareStatusUpdate: (next, old) =>
      withConditions(
        isApproval ? ({ ...old, metadata: next.metadata ?? old.metadata } as KubeObject) : next,
        conditions(next).map(
          (condition) =>
            (isApproval ? undefined : decisionOf(condition, old)) ??
            withDefaults(condition, timesOf(condition, old, now)),
        ),
      ),
    validateStatusUpdate: (next, old) => [
      ...conditionProblems(next),
      ...updateProblems(next, old, isApproval),
    ],
  };
}

/** The decision of that type as it was taken: a write to `status` repeats it, and does not change it. */
function decisionOf({ type }: Loose, old: Stored): Loose | undefined {
  return decisions.has(type) ? conditions(old).find((condition) => condition.type === type) : undefined;
}

/** A condition that is as it was came about when it did. */
function timesOf({ type, status }: Loose, old: Stored, now: string): Loose {
  const before = conditions(old).find((condition) => condition.type === type && condition.status === status);
  return { lastUpdateTime: now, lastTransitionTime: before?.lastTransitionTime ?? now };
}

function withConditions(object: KubeObject, list: readonly Loose[]): KubeObject {
  const { conditions: _, ...status } = (object as LooseObject).status ?? {};
  return {
    ...object,
    status: { ...status, ...(list.length === 0 ? {} : { conditions: list }) },
  } as KubeObject;
}

/** CertificateSigningRequest. Who asks is set by the admission (`admission/certificate-requests.ts`). */
export const certificateSigningRequest: Kind = {
  group: "certificates.k8s.io",
  versions: ["v1"],
  kind: "CertificateSigningRequest",
  plural: "certificatesigningrequests",
  shortNames: ["csr"],
  namespaced: false,
  statusSubresource: true,
  anyFinalizers: true,
  subresources: {
    approval: { kind: "CertificateSigningRequest", verbs: ["get", "patch", "update"] },
  },
  fields: (object) => ({ "spec.signerName": String(spec(object).signerName ?? "") }),
  prepareCreate: (object) => {
    const { status: _, ...rest } = object as LooseObject;
    return { ...rest, status: {} } as KubeObject;
  },
  // What was asked for stays.
  prepareUpdate: (next, old) => ({ ...next, spec: spec(old) }) as KubeObject,
  validate: problemsOf,
};
