/** Checks of labels and tolerations. */
import { labelValueErrors, qualifiedNameErrors } from "@longshore/kube";
import { type DeployField, DeployOptionError } from "./deploy-fields.ts";
import type { TolerationOptions } from "./deploy-options.ts";

/** @throws DeployOptionError unless key and value can be a label */
export function checkLabel(field: DeployField, key: string, value: string): void {
  if (qualifiedNameErrors(key).length > 0) {
    throw new DeployOptionError(field, `"${key}" is not a label key: use e.g. node-role.kubernetes.io/infra`);
  }
  if (labelValueErrors(value).length > 0) {
    throw new DeployOptionError(
      field,
      `"${value}" is not a label value: use at most 63 letters, digits, dashes, dots and underscores`,
    );
  }
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** @throws DeployOptionError unless the API server takes the toleration */
export function checkToleration(field: DeployField, toleration: TolerationOptions): void {
  const { key, operator, value, effect } = toleration;
  if (key !== undefined) checkLabel(field, key, value ?? "");
  if (key === undefined && operator !== "Exists") {
    throw new DeployOptionError(
      field,
      "a toleration without a key tolerates every taint: set its operator to Exists",
    );
  }
  if (effect !== undefined && !effects.includes(effect)) {
    throw new DeployOptionError(field, `"${effect}" is not a taint effect: use one of ${effects.join(", ")}`);
  }
}
