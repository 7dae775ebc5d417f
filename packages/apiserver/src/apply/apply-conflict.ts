/** The error of an apply that conflicts with other managers, as clients see it (apiserver fieldmanager/conflict.go). */
import type { KubeApiError } from "@longshore/kube";
import { problemsMax } from "../api/bounded.ts";
import { apiError } from "../api/errors.ts";
import type { FieldConflict } from "./field-manager.ts";
import { shownPaths } from "./field-set.ts";
import { identityText, type Manager } from "./managers.ts";

/** 409 with one cause for each field that another manager owns. */
export function applyConflict(conflicts: readonly FieldConflict[]): KubeApiError {
  const sorted = [...conflicts].sort((a, b) => (identityText(a.manager) < identityText(b.manager) ? -1 : 1));
  const all = sorted.map(({ manager, set }) => ({
    manager: shownManager(manager),
    paths: shownPaths(set),
  }));
  const fields = reportedConflicts(all);
  const causes = fields.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with ${manager}`, field })),
  );
  const [only] = causes;
  const count = all.reduce((sum, { paths }) => sum + paths.length, 0);
  const text =
    count === 1 && only !== undefined
      ? `Apply failed with 1 conflict: ${only.message}: ${only.field}`
      : `Apply failed with ${count} conflicts: ${fields.map(listed).join("\n")}${count > causes.length ? `\n… and ${count - causes.length} more` : ""}`;
  return apiError(409, "Conflict", text, { causes });
}

interface Conflict {
  readonly manager: string;
  readonly paths: readonly string[];
}

/** The first conflicts, as many as an answer reports: thousands of managers can have thousands of fields. */
function reportedConflicts(conflicts: readonly Conflict[]): readonly Conflict[] {
  let left = problemsMax;
  const reported: Conflict[] = [];
  for (const { manager, paths } of conflicts) {
    if (left <= 0) break;
    reported.push({ manager, paths: paths.slice(0, left) });
    left -= paths.length;
  }
  return reported;
}

function listed({ manager, paths }: Conflict): string {
  return [`conflicts with ${manager}:`, ...paths.map((path) => `- ${path}`)].join("\n");
}

function shownManager({ manager, operation, apiVersion, subresource }: Manager): string {
  const through = subresource === "" ? "" : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(manager)}${through}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}
