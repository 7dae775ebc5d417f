/** How errors and warnings name what was requested: by fields of the options, in whose place a caller may show names of its own. */
import type { DeployOptions } from "./deploy-options.ts";

/** A field of {@link DeployOptions}. */
export type DeployField = keyof DeployOptions;
/** A field of the options of an upgrade or a removal that messages name. */
export type RolloutField = "adopt" | "force";
/** A field of the options of a distribution's controller that {@link DeployOptions} do not have. */
export type DistributionField = "providerType";

/**
 * A field as all messages of this package name it, in backticks: `` `snapshot` ``, with a value `` `controller: deployment` ``,
 * and for what is off `` `storageClasses: []` ``.
 */
export function fieldText(field: DeployField | RolloutField | DistributionField, value?: string): string {
  return value === undefined ? `\`${field}\`` : `\`${field}: ${value}\``;
}

/** Something that was asked for cannot be. The message names the field, as {@link fieldText} writes it, and what to do. */
export class DeployOptionError extends Error {
  override readonly name = "DeployOptionError";
  readonly field: DeployField | DistributionField;
  constructor(field: DeployField | DistributionField, problem: string) {
    super(`${fieldText(field)}: ${problem}`);
    this.field = field;
  }
}
