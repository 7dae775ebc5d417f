/**
 * The words of a conversion of inline volumes: an in-tree volume that a pod template describes itself becomes a claim with a
 * PersistentVolume of the driver, on the same disk. The template is changed only while no pod of it runs.
 */
import type { KubeObject, PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import type { Volume } from "@longshore/translation";
import type { ObjectOwner, Refusal, ScaledWorkload } from "../conversion-types.ts";
import type { UnitDecision, UnitJournal } from "../units/unit-run.ts";

/** The steps of one workload, of both directions. Each first looks whether it is done already. */
export const inlineSteps = [
  /** PersistentVolumes of the driver, pre-bound to the claims' names, policy Retain. */
  "create volumes",
  /** The claims, pre-bound to them. */
  "create claims",
  "await claims bound",
  "scale down",
  /** No pod has the disks, nothing is attached, no node has them in use, and the workload's controller has seen its replicas. */
  "wait for quiet",
  /** The template names the claims (`convert`), or the disks again (`undo`). */
  "change template",
  /** The workload's controller has seen the template: the next pod is made from it. */
  "await template",
  /** Only by `undo`: policy Retain, and read back, before the claims go. */
  "retain volumes",
  "delete claims",
  "await claims gone",
  "delete volumes",
  "await volumes gone",
  "scale up",
] as const;
/** One of them. */
export type InlineStep = (typeof inlineSteps)[number];

/** A volume as a template has it. */
export interface TemplateVolume extends Volume {
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean } | null;
}

/** One volume of a template. */
export interface PlannedInlineVolume {
  /** Name in the template. */
  readonly name: string;
  /** In-tree name of the plugin. */
  readonly plugin: string;
  readonly driver: string;
  /** As the template has it before, and after. */
  readonly before: TemplateVolume;
  readonly after: TemplateVolume;
  readonly volume: PersistentVolume;
  readonly claim: PersistentVolumeClaim;
}

/** One workload as planned. */
export interface PlannedTemplate {
  readonly workload: ScaledWorkload;
  readonly volumes: readonly PlannedInlineVolume[];
  /** The run may set the replicas. */
  readonly scaleDown: boolean;
  /** Who writes the template, with the change to commit. */
  readonly owners: readonly ObjectOwner[];
  /** What must end before, in words. */
  readonly inUseBy: readonly string[];
}

/** What is planned of the templates. */
export interface InlinePlan {
  readonly templates: readonly PlannedTemplate[];
  /** `volume` is the name of the workload, e.g. `Deployment shop/web`. */
  readonly refused: readonly { readonly volume: string; readonly refusals: readonly Refusal[] }[];
}

/** The journal of one workload. Of its template it holds the volumes alone: containers may have secret values. */
export interface InlineJournal extends UnitJournal<InlineStep> {
  readonly planned: PlannedTemplate;
}

/** A workload with a template, as far as a conversion looks at it. */
export interface TemplateWorkload extends KubeObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly updateStrategy?: {
      readonly type?: string;
      readonly rollingUpdate?: { readonly partition?: number };
    };
    readonly template?: { readonly spec?: { readonly volumes?: readonly TemplateVolume[] } };
  };
  readonly status?: { readonly replicas?: number; readonly observedGeneration?: number };
}

/** What is observed of one workload; the decision is a pure function of it and of the journal. */
export interface InlineObservation {
  readonly workload: Stored<TemplateWorkload> | undefined;
  /** In the order of the planned volumes. */
  readonly volumes: readonly (Stored<PersistentVolume> | undefined)[];
  readonly claims: readonly (Stored<PersistentVolumeClaim> | undefined)[];
  /** Who uses or holds the disks by whichever way, in words; empty: they are quiet. */
  readonly users: readonly string[];
  /** Who uses the claims, in words: pods that name them, and attachments of their volumes. */
  readonly claimUsers: readonly string[];
}

/** What is to be done next with one workload. */
export type InlineDecision = UnitDecision<InlineStep>;

/** Its name in words, e.g. `Deployment shop/web`. */
export const templateName = ({
  workload: { kind, namespace, name },
}: Pick<PlannedTemplate, "workload">): string => `${kind} ${namespace}/${name}`;
