/**
 * The flags of fields. A library names the fields of its options in its errors, reports and logs, in backquotes
 * (`` `dir` ``, with a value `` `compat: kubernetes-1.20` ``, switched off `` `attach: false` ``); the user of the command knows its flags, so the command
 * puts them in place of the fields wherever it passes such a text on.
 */
import type { DashboardOptions } from "@longshore/dashboard";
import type { ProcessQualificationOptions, upCluster } from "@longshore/local";
import type {
  ConversionPlanOptions,
  CrossingOptions,
  InlinePlanOptions,
  KubeadmPlatformEnv,
} from "@longshore/migration";
import type { LogFields, Logger } from "@longshore/runtime";

/** The flag of each field that the texts of one library may name. */
export type FieldFlags = Readonly<Record<string, string>>;

/** Flags of fields that `Options` has: a field that is renamed there fails the build here. */
export type FlagsOf<Options> = Partial<Record<keyof Options, string>>;

type UpOptions = Parameters<typeof upCluster>[1];

/** Fields of clusters, crossings, qualifications and dashboards. */
export const clusterFields: FieldFlags = {
  ...({ dir: "--dir" } satisfies FlagsOf<UpOptions>),
  ...({
    compat: "--compat",
    shutdownGracePeriod: "--shutdown-grace-period",
    shutdownGracePeriodCriticalPods: "--shutdown-grace-period-critical-pods",
    nodes: "--nodes",
    port: "--port",
    plugins: "--plugin",
    withoutInTreePlugins: "--without-in-tree-plugins",
    nodeDecidesMigration: "--node-decides-migration",
    ownDriver: "--driver",
  } satisfies FlagsOf<NonNullable<UpOptions["existing"]>>),
  ...({ force: "--force", onlyNodes: "--only-node" } satisfies FlagsOf<CrossingOptions>),
  ...({ nodeCommand: "--node-command" } satisfies FlagsOf<KubeadmPlatformEnv>),
  ...({
    scaleDown: "--scale-down",
    wait: "--wait",
    ownersPaused: "--owners-paused",
    templates: "--templates",
    classSuffix: "--class-suffix",
  } satisfies FlagsOf<ConversionPlanOptions>),
  ...({ sizes: "--claim-size" } satisfies FlagsOf<InlinePlanOptions>),
  platform: "--platform",
  ...({ plugin: "--plugin" } satisfies FlagsOf<ProcessQualificationOptions>),
  ...({ port: "--port" } satisfies FlagsOf<DashboardOptions>),
};

/** The text with flags in place of fields. Other words in backquotes stay as they are. */
export function inFlags(text: string, flags: FieldFlags): string {
  return text.replace(/`(\w+)(?:: ([^`]+))?`/g, (whole, field: string, value: string | undefined) => {
    const flag = Object.hasOwn(flags, field) ? flags[field] : undefined;
    if (flag === undefined) return whole;
    if (value === undefined) return flag;
    return value === "[]" || value === "false" ? flag.replace(/^--(?:no-)?/, "--no-") : `${flag} ${value}`;
  });
}

/** Errors whose words are those of a driver or a server: a parameter of theirs may have the name of a field. */
const foreignErrors: ReadonlySet<string> = new Set([
  "CsiCallError",
  "CsiStatusError",
  "KubeApiError",
  "KubeTransportError",
]);

/**
 * The error with flags in place of fields, in the messages of its causes as well; what drivers and servers have said stays as it
 * is. The given one does not change.
 * @param depth how many causes are looked at: they may form a circle
 */
export function errorInFlags(error: Error, flags: FieldFlags, depth = 10): Error {
  if (depth === 0 || foreignErrors.has(error.name)) return error;
  const cause = error.cause instanceof Error ? errorInFlags(error.cause, flags, depth - 1) : error.cause;
  return Object.create(error, {
    message: { value: inFlags(error.message, flags) },
    stack: { value: error.stack === undefined ? undefined : inFlags(error.stack, flags) },
    cause: { value: cause },
  });
}

/** A logger that writes flags in place of fields, in messages and in the errors beside them. */
export function loggerInFlags(logger: Logger, flags: FieldFlags): Logger {
  const flagged = (fields: LogFields | undefined) =>
    fields?.error instanceof Error ? { ...fields, error: errorInFlags(fields.error, flags) } : fields;
  const at =
    (level: "debug" | "info" | "warn" | "error") =>
    (message: string, fields?: LogFields): void =>
      logger[level](inFlags(message, flags), flagged(fields));
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => loggerInFlags(logger.child(fields), flags),
    ...(logger.debugs === undefined ? {} : { debugs: logger.debugs }),
  };
}
