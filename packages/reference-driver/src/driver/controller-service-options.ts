/** What the handlers of the controller are made with. */
import type { ProviderCloud } from "../disk-cloud/index.ts";
import type { DriverKind } from "./kinds/driver-kind.ts";

/** What the controller services need. */
export interface ControllerServiceOptions {
  readonly cloud: ProviderCloud;
  readonly kind: DriverKind;
  /** Where a volume is made when the caller does not care; default the zones of the instances, in turn. */
  readonly zone: string | undefined;
}
