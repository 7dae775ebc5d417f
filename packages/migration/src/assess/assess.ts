/** Judges an inventory: which findings there are now and at a target version, and the verdict on each. Pure. */
import { SelectorError } from "@longshore/kube";
import { foreignText } from "@longshore/runtime";
import { type AssessView, type InventoryFacts, inventoryFacts } from "./assess-view.ts";
import type { AssessmentDiff } from "./assessment-diff.ts";
import { type AssessmentFinding, found, type RuleFinding } from "./assessment-finding.ts";
import type { Severity } from "./finding-codes.ts";
import type { Inventory } from "./inventory.ts";
import { minorVersionOf } from "./plugin-history.ts";
import { attachmentRules } from "./rules/attachment-rules.ts";
import { claimRules } from "./rules/claim-rules.ts";
import { classRules } from "./rules/class-rules.ts";
import { diskRules } from "./rules/disk-rules.ts";
import { driverRules } from "./rules/driver-rules.ts";
import { eventRules } from "./rules/event-rules.ts";
import { limitRules } from "./rules/limit-rules.ts";
import { nodeRules } from "./rules/node-rules.ts";
import { orderRules } from "./rules/order-rules.ts";
import { providerRules } from "./rules/provider-rules.ts";
import { snapshotRules } from "./rules/snapshot-rules.ts";
import { upgradeRules } from "./rules/upgrade-rules.ts";
import { useRules } from "./rules/use-rules.ts";
import { volumeRules } from "./rules/volume-rules.ts";
import { workloadRules } from "./rules/workload-rules.ts";
import { expiredSuppressions, type Suppression, suppressionOfFinding } from "./suppressions.ts";

/** What an assessment comes to. */
export type Verdict = "READY" | "WARNINGS" | "NOT READY" | "CANNOT DETERMINE";

/** Which versions are judged, as minor versions of Kubernetes 1. */
export interface AssessOptions {
  /** The version that the cluster has; default: that of its newest kubelet. */
  readonly clusterMinor?: number;
  /** The version that the cluster is to get. */
  readonly targetMinor?: number;
  /** Findings that do not count. */
  readonly suppressions?: readonly Suppression[];
}

/** The result of an assessment. */
export interface Assessment {
  readonly at: Date;
  readonly clusterMinor: number | undefined;
  readonly targetMinor: number | undefined;
  readonly verdict: Verdict;
  /** The verdict at the target version; undefined where none was named. */
  readonly targetVerdict: Verdict | undefined;
  /** Errors first, then by code and object. */
  readonly findings: readonly AssessmentFinding[];
  /** What was found and does not count, in the same order. */
  readonly suppressed: readonly SuppressedFinding[];
  /** What has changed since an earlier report, where one was compared. */
  readonly diff?: AssessmentDiff;
  /** How many objects of each list were looked at. */
  readonly looked: Readonly<Record<string, number>>;
}

/** A finding that is accepted. */
export interface SuppressedFinding extends Pick<Suppression, "reason" | "until"> {
  readonly finding: AssessmentFinding;
}

type Rule<View> = (view: View) => RuleFinding[];

/** Rules of which a version is a part. */
const versionRules: readonly Rule<AssessView>[] = [
  driverRules,
  volumeRules,
  diskRules,
  providerRules,
  useRules,
  workloadRules,
  classRules,
  snapshotRules,
  upgradeRules,
];
/** Rules that find the same at every version: they look once. */
const factRules: readonly Rule<InventoryFacts>[] = [
  claimRules,
  attachmentRules,
  eventRules,
  nodeRules,
  orderRules,
  limitRules,
];

/** Judges the inventory. It costs time in proportion to the inventory, for each of the versions. */
export function assess(inventory: Inventory, options: AssessOptions = {}): Assessment {
  const clusterMinor = options.clusterMinor ?? newestKubelet(inventory);
  const { targetMinor, suppressions = [] } = options;
  const expired = expiredSuppressions(suppressions, inventory.now);
  const suppressionOf = (finding: RuleFinding) => suppressionOfFinding(suppressions, finding, inventory.now);
  const counting = (findings: readonly RuleFinding[]) => [
    ...expired,
    ...findings.filter((finding) => suppressionOf(finding) === undefined),
  ];
  const facts = inventoryFacts(inventory);
  const always = factRules.flatMap((rule) => applied(rule, facts));
  const allNow = findingsAt({ ...facts, minor: clusterMinor }, always);
  const allTarget =
    targetMinor === undefined
      ? undefined
      : findingsAt({ ...facts, minor: targetMinor, upgradeFrom: { minor: clusterMinor } }, always);
  const now = counting(allNow);
  const target = allTarget && counting(allTarget);
  const suppressed = suppressions.length === 0 ? [] : merged(allNow, allTarget);
  return {
    at: inventory.now,
    clusterMinor,
    targetMinor,
    verdict: verdictOf(now),
    targetVerdict: target && verdictOf(target),
    findings: merged(now, target),
    suppressed: suppressed.flatMap((finding) => {
      const suppression = suppressionOf(finding);
      if (suppression === undefined) return [];
      return [{ finding, reason: suppression.reason, until: suppression.until }];
    }),
    looked: lookedAt(inventory),
  };
}

function findingsAt(view: AssessView, always: readonly RuleFinding[]): RuleFinding[] {
  const gaps = [...view.inventory.gaps];
  if (view.minor === undefined) {
    gaps.push(found("LS1003", { object: "cluster", evidence: "no Node reports the version of its kubelet" }));
  }
  return [...gaps, ...always, ...versionRules.flatMap((rule) => applied(rule, view))];
}

/** Objects of a dump may have members of any type: a rule that cannot go on with them is a gap, not the end of the report. */
function applied<View>(rule: Rule<View>, view: View): RuleFinding[] {
  try {
    return rule(view);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SelectorError)) throw error;
    const evidence = `a field is not of the type that the API gives it: ${foreignText(error.message)}`;
    return [found("LS1004", { object: `objects that ${rule.name} look at`, evidence })];
  }
}

/** The control plane is of this version or of a newer one: no kubelet may be newer than it. */
function newestKubelet({ nodes }: Inventory): number | undefined {
  let newest: number | undefined;
  for (const node of nodes) {
    const minor = minorVersionOf(node.status?.nodeInfo?.kubeletVersion);
    if (minor !== undefined && (newest === undefined || minor > newest)) newest = minor;
  }
  return newest;
}

function verdictOf(findings: readonly RuleFinding[]): Verdict {
  const has = (severity: Severity) => findings.some((finding) => finding.severity === severity);
  if (has("error")) return "NOT READY";
  if (has("unknown")) return "CANNOT DETERMINE";
  return has("warning") ? "WARNINGS" : "READY";
}

const keyOfFinding = (f: RuleFinding) => JSON.stringify([f.code, f.severity, f.object, f.field, f.evidence]);

function merged(
  now: readonly RuleFinding[],
  target: readonly RuleFinding[] | undefined,
): AssessmentFinding[] {
  const later = new Map((target ?? []).map((finding) => [keyOfFinding(finding), finding]));
  const both = now.map((finding): AssessmentFinding => {
    const when = later.delete(keyOfFinding(finding)) ? "both" : "now";
    return { ...finding, when };
  });
  const all = [...both, ...[...later.values()].map((f): AssessmentFinding => ({ ...f, when: "target" }))];
  return all.sort(
    (a, b) =>
      severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
      compare(a.code, b.code) ||
      compare(a.object, b.object),
  );
}

/** The heaviest first. */
export const severities: readonly Severity[] = ["error", "unknown", "warning", "info"];

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function lookedAt(inventory: Inventory): Record<string, number> {
  return Object.fromEntries(
    Object.entries(inventory).flatMap(([name, list]) =>
      Array.isArray(list) && name !== "gaps" ? [[name, list.length]] : [],
    ),
  );
}
