/** What a qualification found: a table of parity, and whether the driver may take over from the in-tree code. */
import type { DriverCall } from "../layout/driver-calls.ts";

/** What in-tree volumes do, and a driver must do as well (in-tree to CSI migration design, feature parity). */
export const behaviours = [
  "provision",
  "topology",
  "attach",
  "mount",
  "reconstruction",
  "write/read",
  "expand",
  "block",
  "snapshot",
  "delete",
  "inline",
] as const;

/** One of {@link behaviours}. */
export type Behaviour = (typeof behaviours)[number];

/** What some volumes refuse. A driver must refuse no more of it than the in-tree plugin does. */
export const features = [
  "access mode ReadWriteMany",
  "access mode ReadWriteOncePod",
  "volume mode Block",
  "selector",
  "data source",
  "mount options",
  "class parameter that does not exist",
  "subPath",
  "fsGroup",
  "generic ephemeral volume",
] as const;

/** One of {@link features}. */
export type Feature = (typeof features)[number];

/** What a qualification can do without; every other behaviour uses the volume that `provision` makes. */
export type Skippable = Exclude<Behaviour, "provision"> | Feature;

/** Every {@link Skippable}. */
export const skippables: readonly Skippable[] = [
  ...behaviours.filter((name): name is Exclude<Behaviour, "provision"> => name !== "provision"),
  ...features,
];

/** What came of an attempt to use a feature: a container ran on the volume, or it was refused, in these words. */
export type FeatureOutcome =
  | { readonly kind: "served" }
  | { readonly kind: "refused"; readonly object: string; readonly sentence: string };

/** How it stands with one feature. */
export interface FeatureResult {
  readonly feature: Feature;
  readonly inTree: FeatureOutcome;
  readonly migrated: FeatureOutcome;
  /** `lost`: served in-tree, and refused migrated. `gained`: refused in-tree, and served migrated. */
  readonly verdict: "same" | "lost" | "gained";
  /** What to do about a feature that is lost. */
  readonly remedy?: string;
}

/** How it stands with one behaviour. */
export interface BehaviourResult {
  readonly behaviour: Behaviour;
  /**
   * `driver`: it works, and the driver's call log shows that the driver served it. `not in-tree`: the plugin's volumes do
   * not have it, so that the driver owes nothing. `not verified`: it could not be tried, as an earlier one failed.
   * `skipped`: it was not to be tried.
   */
  readonly verdict: "driver" | "failed" | "not in-tree" | "not verified" | "skipped";
  /** Calls of the driver that prove it. */
  readonly calls: readonly string[];
  /** What was seen; why it failed; why it is not there. */
  readonly detail: string;
  readonly ms: number;
}

/** The report of a qualification. */
export interface QualificationReport {
  readonly plugin: string;
  readonly driverName: string;
  readonly behaviours: readonly BehaviourResult[];
  /** What was not to be tried. */
  readonly skipped: readonly Skippable[];
  /** What volumes refuse, in-tree and migrated. */
  readonly features: readonly FeatureResult[];
  /** Where a PV provisioned through migration differs from the in-tree one; undefined when it could not be compared. */
  readonly differences: readonly string[] | undefined;
  /** Where it differs because the translation of this plugin carries no more, whatever the driver does. */
  readonly losses: readonly string[];
  /** In-tree calls of the provider's disk API from the moment the whole cluster had been carried over. */
  readonly inTreeCalls: number;
  /** Calls that the driver answered with something other than OK, for the author to look at. */
  readonly refusedCalls: readonly Pick<DriverCall, "place" | "rpc" | "code">[];
  readonly elapsedMs: number;
}

/** What a qualification says: `except`, what was tried speaks for the driver, and some was not to be tried. */
export type Verdict = "promotable" | "promotable except" | "not promotable";

/** The verdict. */
export function verdictOf(report: QualificationReport): Verdict {
  if (reasonsAgainst(report).length > 0) return "not promotable";
  return report.skipped.length > 0 ? "promotable except" : "promotable";
}

/** Why the plugin must not be promoted to this driver; none: it may be, but for what was skipped. */
export function reasonsAgainst(report: QualificationReport): string[] {
  const failed = report.behaviours.filter(({ verdict }) => verdict === "failed");
  const missing = behaviours.filter((name) => !report.behaviours.some(({ behaviour }) => behaviour === name));
  return [
    ...failed.map(({ behaviour, detail }) => `${behaviour} failed: ${detail}`),
    ...report.behaviours.flatMap(({ behaviour, verdict, detail }) =>
      verdict === "not verified" ? [`${behaviour} could not be verified: ${detail}`] : [],
    ),
    ...missing.map((name) => `${name} was not reached`),
    ...report.features.flatMap(({ feature, verdict, migrated, remedy }) =>
      verdict === "lost" && migrated.kind === "refused"
        ? [
            `${feature} is served in-tree and refused migrated: ${migrated.object}: ${migrated.sentence}; ${remedy}`,
          ]
        : [],
    ),
    ...(report.differences === undefined
      ? ["no PersistentVolume provisioned through migration could be compared with an in-tree one"]
      : report.differences.map(
          (text) => `a PersistentVolume provisioned through migration differs: ${text}`,
        )),
    ...(report.inTreeCalls === 0
      ? []
      : [`in-tree code called the provider ${report.inTreeCalls} times after the migration`]),
  ];
}
