/** The failure of an apply that others stand against, as clients see it (apiserver, fieldmanager/conflict.go). */
import type { KubeApiError } from "@longshore/kube";
import { apiError } from "../api/errors.ts";
import type { FieldConflict } from "./field-manager.ts";
import { shownPaths } from "./field-set.ts";
import { identityText, type Manager } from "./managers.ts";

/** 409 with one cause for each field that somebody else manages. */
export function applyConflict(conflicts: readonly FieldConflict[]): KubeApiError {
  const sorted = [...conflicts].sort((a, b) => (identityText(a.manager) < identityText(b.manager) ? -1 : 1));
  const fields = sorted.map(({ manager, set }) => ({
    manager: shownManager(manager),
    paths: shownPaths(set),
  }));
  const causes = fields.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with ${manager}`, field })),
  );
  const [only] = causes;
  const text =
    causes.length === 1 && only !== undefined
      ? `Apply failed with 1 conflict: ${only.message}: ${only.field}`
      : `Apply failed with ${causes.length} conflicts: ${fields.map(listed).join("\n")}`;
  return apiError(409, "Conflict", text, { causes });
}

function listed({ manager, paths }: { readonly manager: string; readonly paths: readonly string[] }): string {
  return [`conflicts with ${manager}:`, ...paths.map((path) => `- ${path}`)].join("\n");
}

function shownManager({ manager, operation, apiVersion, subresource }: Manager): string {
  const through = subresource === "" ? "" : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(manager)}${through}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}
