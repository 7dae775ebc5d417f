/** A driver as NodeGetInfo describes it. */
export interface DriverInfo {
  readonly nodeID: string;
  /** Most volumes of the driver on this node; 0: not said. */
  readonly maxVolumes: bigint;
  readonly topology: Readonly<Record<string, string>>;
}
