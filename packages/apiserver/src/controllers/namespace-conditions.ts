/**
 * What a namespace that is being deleted still waits for, as conditions of its status (kubernetes
 * pkg/controller/namespace/deletion/status_condition_utils.go). Pure.
 */
import type { KubeObject, Stored } from "@longshore/kube";

/** Objects of one kind that are still there. */
export interface Remaining {
  /** `pods.`, `deployments.apps`: the resource with its group, as the reference writes it. */
  readonly resource: string;
  readonly objects: readonly Stored[];
}

interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

const fine: readonly (readonly [type: string, reason: string, message: string])[] = [
  ["NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"],
  [
    "NamespaceDeletionGroupVersionParsingFailure",
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
  ],
  [
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
  ],
];

function said(
  remaining: readonly Remaining[],
): readonly (readonly [string, "True" | "False", string, string])[] {
  const finalizers = new Map<string, number>();
  for (const { objects } of remaining) {
    for (const finalizer of objects.flatMap(({ metadata }) => metadata.finalizers ?? [])) {
      finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
    }
  }
  const content = remaining.map(
    ({ resource, objects }) => `${resource} has ${objects.length} resource instances`,
  );
  const held = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`);
  return [
    ...fine.map(([type, reason, message]) => [type, "False", reason, message] as const),
    content.length === 0
      ? ([
          "NamespaceContentRemaining",
          "False",
          "ContentRemoved",
          "All content successfully removed",
        ] as const)
      : ([
          "NamespaceContentRemaining",
          "True",
          "SomeResourcesRemain",
          `Some resources are remaining: ${content.sort().join(", ")}`,
        ] as const),
    held.length === 0
      ? ([
          "NamespaceFinalizersRemaining",
          "False",
          "ContentHasNoFinalizers",
          "All content-preserving finalizers finished",
        ] as const)
      : ([
          "NamespaceFinalizersRemaining",
          "True",
          "SomeFinalizersRemain",
          `Some content in the namespace has finalizers remaining: ${held.sort().join(", ")}`,
        ] as const),
  ];
}

/** The conditions as they now are, or undefined when the namespace says so already. */
export function namespaceConditions(
  namespace: Stored,
  remaining: readonly Remaining[],
  now: string,
): readonly Condition[] | undefined {
  const { status } = namespace as KubeObject & {
    readonly status?: { readonly conditions?: readonly Condition[] };
  };
  const before = status?.conditions ?? [];
  let changed = false;
  const conditions = said(remaining).map(([type, state, reason, message]): Condition => {
    const old = before.find((condition) => condition.type === type);
    changed ||= old?.status !== state || old.reason !== reason || old.message !== message;
    const since = old?.status === state ? old.lastTransitionTime : now;
    return { type, status: state, reason, message, lastTransitionTime: since };
  });
  return changed ? conditions : undefined;
}
