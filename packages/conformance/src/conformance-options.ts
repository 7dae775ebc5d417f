/** The options of a run of the conformance suite, and the seams that it uses. */
import type { CsiConnector } from "@longshore/csi";
import type { Clock, Host, Random } from "@longshore/runtime";
import type { CheckResult } from "./check-result.ts";
import type { DriverSecrets } from "./driver-secrets.ts";

/** The seams of a run. */
export interface ConformanceEnv {
  readonly clock: Clock;
  readonly random: Random;
  readonly connector: CsiConnector;
  /** The machine that the node service works on; only the paths given to the driver are touched. */
  readonly host: Host;
}

/** Options of a run. */
export interface ConformanceOptions {
  /** Where the driver listens: a path or `unix://` URL. */
  readonly endpoint: string;
  /** Where its controller service listens; default `endpoint`. */
  readonly controllerEndpoint?: string;
  /** Directory, absolute, below which staging paths are made. It must exist. */
  readonly stagingDir: string;
  /** Directory, absolute, below which target paths are made. It must exist. */
  readonly targetDir: string;
  /** Deadline of each call, in milliseconds; default one minute. */
  readonly timeoutMs?: number;
  /** Size of the volumes that are made, in bytes; default 1 GiB. */
  readonly volumeSizeBytes?: bigint;
  /** Size to which they are expanded, in bytes; default `volumeSizeBytes` and 1 GiB. */
  readonly expandSizeBytes?: bigint;
  /** Parameters of every CreateVolume. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Parameters of every CreateSnapshot. */
  readonly snapshotParameters?: Readonly<Record<string, string>>;
  /** Parameters that ControllerModifyVolume may set. */
  readonly mutableParameters?: Readonly<Record<string, string>>;
  /** How volumes are published; default `mount`. */
  readonly accessType?: "mount" | "block";
  /** File system of mounted volumes; default the driver's own. */
  readonly fsType?: string;
  readonly secrets?: DriverSecrets;
  /** Id of a second node of the driver, to publish one volume twice. */
  readonly secondNodeId?: string;
  /** Also attach as many volumes as the node takes, and one more. */
  readonly fillNode?: boolean;
  /** Ends the driver without warning and starts it again; resolves once it has been started. */
  readonly restartDriver?: (signal: AbortSignal) => Promise<void>;
  /** How often what may be repeated is repeated; default 3. */
  readonly repeats?: number;
  /** How many calls are made at a time to see whether they get in each other's way; default 5. */
  readonly parallel?: number;
  /** How long to wait for slow operations, in milliseconds: a snapshot to be ready, a driver to be back; default two minutes. */
  readonly settleTimeoutMs?: number;
  /** Which checks run; default all. */
  readonly select?: (id: string) => boolean;
  readonly onEvent?: (event: ConformanceEvent) => void;
}

/** What is going on in a run. */
export type ConformanceEvent =
  | { readonly kind: "checkStarted"; readonly id: string; readonly index: number; readonly total: number }
  | { readonly kind: "callStarted"; readonly rpc: string }
  | { readonly kind: "checkEnded"; readonly result: CheckResult }
  | { readonly kind: "cleaningUp"; readonly things: number };

/** The options with their defaults. */
export type SettledOptions = ConformanceOptions &
  Required<
    Pick<
      ConformanceOptions,
      | "timeoutMs"
      | "volumeSizeBytes"
      | "expandSizeBytes"
      | "parameters"
      | "snapshotParameters"
      | "mutableParameters"
      | "accessType"
      | "secrets"
      | "repeats"
      | "parallel"
      | "settleTimeoutMs"
    >
  >;

const gibibyte = 1024n ** 3n;

/** Fills in the defaults. */
export function settleOptions(options: ConformanceOptions): SettledOptions {
  const volumeSizeBytes = options.volumeSizeBytes ?? gibibyte;
  return {
    timeoutMs: 60_000,
    parameters: {},
    snapshotParameters: {},
    mutableParameters: {},
    accessType: "mount",
    secrets: {},
    repeats: 3,
    parallel: 5,
    settleTimeoutMs: 120_000,
    ...options,
    volumeSizeBytes,
    expandSizeBytes: options.expandSizeBytes ?? volumeSizeBytes + gibibyte,
  };
}
