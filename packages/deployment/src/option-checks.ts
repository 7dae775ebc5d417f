/** Checks of labels and tolerations that flags give. */
import { labelValueErrors, qualifiedNameErrors } from "@longshore/kube";
import { DeployOptionError, type TolerationOptions } from "./deploy-options.ts";

/** @throws DeployOptionError unless key and value can be a label */
export function checkLabel(flag: string, key: string, value: string): void {
  if (qualifiedNameErrors(key).length > 0) {
    throw new DeployOptionError(
      flag,
      `"${key}" is no key of a label: use e.g. node-role.kubernetes.io/infra`,
    );
  }
  if (labelValueErrors(value).length > 0) {
    throw new DeployOptionError(
      flag,
      `"${value}" is no value of a label: use at most 63 letters, digits, dashes, dots and underscores`,
    );
  }
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** @throws DeployOptionError unless the API server takes the toleration */
export function checkToleration(flag: string, toleration: TolerationOptions): void {
  const { key, operator, value, effect } = toleration;
  if (key !== undefined) checkLabel(flag, key, value ?? "");
  if (key === undefined && operator !== "Exists") {
    throw new DeployOptionError(flag, "a toleration without a key bears every taint: write it as :Exists");
  }
  if (effect !== undefined && !effects.includes(effect)) {
    throw new DeployOptionError(
      flag,
      `"${effect}" is no effect of a taint: use one of ${effects.join(", ")}`,
    );
  }
}
