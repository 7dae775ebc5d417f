/** The plan of capacity objects, made once for each state of the caches and not for each pass. */
import type { CSINode, CSIStorageCapacity, Informer, Node, StorageClass } from "@longshore/kube";
import type { Segments } from "@longshore/storage";
import type { Driver } from "../../common/sidecar-env.ts";
import { sameLabels, topologySegments } from "../topology/topology-segments.ts";
import { type CapacityPlan, planCapacity } from "./capacity-plan.ts";

/** What a plan is made from. */
export interface PlanContext {
  readonly driver: Driver;
  readonly storageClasses: Informer<StorageClass>;
  readonly csiNodes: Informer<CSINode>;
  readonly nodes: Informer<Node>;
  /** The objects of this provisioner: selected by its labels. */
  readonly objects: Informer<CSIStorageCapacity>;
  /** The only part of the cluster to publish, where each node has a provisioner of its own. */
  readonly fixedSegments: Segments | undefined;
  readonly forImmediateBinding: boolean;
}

/** The plan as the caches have it. */
export interface PlanView {
  now(): CapacityPlan;
  /** Calls `onChange` after each change that may change the plan. Returns a function that ends that. */
  follow(onChange: () => void): () => void;
}

/** The plan is current only while the view is followed. */
export function planView(context: PlanContext): PlanView {
  const { storageClasses, csiNodes, nodes, objects } = context;
  let known: CapacityPlan | undefined;
  return {
    now() {
      known ??= planCapacity({
        driverName: context.driver.name,
        segments: segmentsNow(context),
        storageClasses: storageClasses.list(),
        objects: objects.list(),
        forImmediateBinding: context.forImmediateBinding,
      });
      return known;
    },
    follow(onChange) {
      // What was planned before may be stale: no change was followed until now.
      known = undefined;
      const replan = () => {
        known = undefined;
        onChange();
      };
      const anyChange = { added: replan, updated: replan, deleted: replan };
      const ends = [
        storageClasses.onChange(anyChange),
        csiNodes.onChange(anyChange),
        nodes.onChange({
          ...anyChange,
          updated: (before, after) => {
            if (!sameLabels(before, after)) replan();
          },
        }),
        objects.onChange(anyChange),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

function segmentsNow({ driver, fixedSegments, csiNodes, nodes }: PlanContext): readonly Segments[] {
  if (fixedSegments !== undefined) return [fixedSegments];
  // Its room is the same from everywhere.
  if (!driver.capabilities.plugin.has("VOLUME_ACCESSIBILITY_CONSTRAINTS")) return [{}];
  return topologySegments(driver.name, csiNodes.list(), nodes.list());
}
