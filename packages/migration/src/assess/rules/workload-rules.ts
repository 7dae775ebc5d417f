/** Volumes that pods and the templates of pods describe themselves, and budgets that keep pods where they are. */
import { type KubeObject, labelSelectorMatches, type Pod, type Stored, type Volume } from "@longshore/kube";
import { checkInlineVolume } from "@longshore/translation";
import { member } from "../../convert/kube-object.ts";
import { podHolderOf } from "../../convert/pod-volumes.ts";
import { type AssessView, pluginOfInlineVolume, stateOf, translatedInline } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";
import type { HeldPodSpec, TemplateHolder } from "../template-paths.ts";
import { translationFault } from "../translation-fault.ts";

/** Findings about pods and what makes them. */
export function workloadRules(view: AssessView): RuleFinding[] {
  return [...holdersOf(view).flatMap((holder) => ownVolumes(view, holder)), ...budgetRules(view)];
}

/** Pods and templates as they are written down: what a controller makes of them is left out, since it cannot be changed there. */
export function holdersOf({ inventory }: AssessView): readonly Stored[] {
  return [...inventory.pods, ...inventory.workloads].filter(
    ({ metadata }) => metadata.ownerReferences?.some(({ controller }) => controller === true) !== true,
  );
}

/** The volumes in the specs of pods that an object holds, with the path of each. */
export function volumesOf(object: KubeObject): readonly (readonly [field: string, volume: Volume])[] {
  return podSpecsOf(object).flatMap(({ path, volumes }) =>
    volumes.map((volume, index) => [`${path}.volumes[${index}]`, volume as Volume] as const),
  );
}

function podSpecsOf(object: KubeObject): readonly HeldPodSpec[] {
  const { podSpecs } = object as Partial<TemplateHolder>;
  if (podSpecs !== undefined) return podSpecs;
  const holder = podHolderOf(object as Parameters<typeof podHolderOf>[0]);
  const volumes = holder === undefined ? undefined : member(object, ...holder.path, "volumes");
  return holder === undefined || !Array.isArray(volumes) ? [] : [{ path: holder.path.join("."), volumes }];
}

function ownVolumes(view: AssessView, holder: Stored): RuleFinding[] {
  const object = subjectOf(holder.kind ?? "object", holder);
  return volumesOf(holder).flatMap(([field, volume]) => {
    const gates = pluginOfInlineVolume(volume);
    if (gates === undefined) return [];
    const state = stateOf(view, gates);
    if (state === "gone") return [];
    const fault = translationFault(() => {
      checkInlineVolume(volume);
      translatedInline(volume, holder.metadata.namespace ?? "default");
    });
    if (fault !== undefined) {
      const severity = state === "redirected" ? "error" : "warning";
      return [
        found("LS1204", {
          object,
          severity,
          ...fault,
          field: `${field}.${fault.field ?? ""}`.replace(/\.$/, ""),
        }),
      ];
    }
    return [
      found("LS1203", { object, field, evidence: `volume ${volume.name} is one of ${gates.inTreeName}` }),
    ];
  });
}

function budgetRules(view: AssessView): RuleFinding[] {
  const byNamespace = new Map<string, Set<Stored<Pod>>>();
  for (const { pod, gates } of view.uses) {
    if (gates === undefined) continue;
    const namespace = pod.metadata.namespace ?? "default";
    byNamespace.set(namespace, (byNamespace.get(namespace) ?? new Set()).add(pod));
  }
  return view.inventory.budgets.flatMap((budget) => {
    if (budget.status?.disruptionsAllowed !== 0) return [];
    const selector = budget.spec?.selector;
    const covered = [...(byNamespace.get(budget.metadata.namespace ?? "default") ?? [])].filter(
      ({ metadata }) => selector !== undefined && labelSelectorMatches(selector, metadata.labels ?? {}),
    );
    const [first] = covered;
    if (first === undefined) return [];
    return [
      found("LS1801", {
        object: subjectOf("PodDisruptionBudget", budget),
        field: "status.disruptionsAllowed",
        evidence: `it is 0, and covers ${covered.length} pods with in-tree volumes, such as ${first.metadata.name} on node ${first.spec?.nodeName}`,
      }),
    ];
  });
}
