/** Checks of labels and tolerations. */
import { labelValueErrors, qualifiedNameErrors } from "@longshore/kube";
import { type DeployField, DeployOptionError } from "./deploy-fields.ts";
import type { TolerationOptions } from "./deploy-options.ts";

/** @throws DeployOptionError unless key and value can be a label */
export function checkLabel(field: DeployField, key: string, value: string): void {
  if (qualifiedNameErrors(key).length > 0) {
    throw new DeployOptionError(
      field,
      `"${key}" is no key of a label: use e.g. node-role.kubernetes.io/infra`,
    );
  }
  if (labelValueErrors(value).length > 0) {
    throw new DeployOptionError(
      field,
      `"${value}" is no value of a label: use at most 63 letters, digits, dashes, dots and underscores`,
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
      "a toleration without a key bears every taint: give it the operator Exists",
    );
  }
  if (effect !== undefined && !effects.includes(effect)) {
    throw new DeployOptionError(
      field,
      `"${effect}" is no effect of a taint: use one of ${effects.join(", ")}`,
    );
  }
}
