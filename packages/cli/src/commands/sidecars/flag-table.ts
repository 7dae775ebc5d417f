/**
 * Tables of flags, one for each sidecar: help, completion, parsing, documentation and defaults all come from them.
 * Flags have the reference's names and habits (Go `flag`), so that a manifest of the reference goes on working.
 */
import { FeatureGateError, parseFeatureGates } from "@longshore/runtime";
import {
  FlagValueError,
  formatDuration,
  parseBoolean,
  parseDuration,
  parseNumber,
  parseWhole,
} from "./go-values.ts";

/** One flag. */
export interface Flag<T> {
  /** What its value is called in help; undefined for a switch, which needs none. */
  readonly value: string | undefined;
  /** Its value where it is not given. */
  readonly default: T;
  /** The reference's default, where ours is another: in force with `--compat=reference`. */
  readonly referenceDefault?: T;
  /** How the default is written. */
  readonly defaultText: string;
  readonly help: string;
  /** Why it has no effect any more: it is accepted, and a warning says so. */
  readonly deprecated?: string;
  /** The value that a text stands for. @throws FlagValueError */
  parse(text: string): T;
}

/** Flags by name, without dashes. */
export type FlagTable = Readonly<Record<string, Flag<unknown>>>;

/** The values of a table's flags. */
export type FlagValues<T extends FlagTable> = {
  readonly [N in keyof T]: T[N] extends Flag<infer V> ? V : never;
};

/** A text. */
export function text(value: string, fallback: string, help: string): Flag<string> {
  return { value, default: fallback, defaultText: fallback, help, parse: (given) => given };
}

/** One of a few words. */
export function choice<C extends string>(choices: readonly C[], fallback: C, help: string): Flag<C> {
  return {
    value: choices.filter((word) => word !== "").join("|"),
    default: fallback,
    defaultText: fallback,
    help,
    parse(given) {
      const found = choices.find((word) => word === given);
      if (found !== undefined) return found;
      throw new FlagValueError(`choose one of ${choices.filter((word) => word !== "").join(", ")}`);
    },
  };
}

/** True or false; given without a value it is true. */
export function toggle(fallback: boolean, help: string): Flag<boolean> {
  return {
    value: undefined,
    default: fallback,
    defaultText: String(fallback),
    help,
    parse: parseBoolean,
  };
}

/** A duration, kept in milliseconds. @param fallback as Go writes it */
export function duration(
  fallback: string,
  help: string,
  bounds: { readonly mayBeZero?: boolean } = {},
): Flag<number> {
  const ms = parseDuration(fallback);
  return {
    value: "duration",
    default: ms,
    defaultText: formatDuration(ms),
    help,
    parse(given) {
      const value = parseDuration(given);
      if (value > 0 || (value === 0 && bounds.mayBeZero === true)) return value;
      throw new FlagValueError("write a duration above zero");
    },
  };
}

/** A whole number. */
export function whole(fallback: number, help: string, least = 0): Flag<number> {
  return {
    value: "number",
    default: fallback,
    defaultText: String(fallback),
    help,
    parse: (given) => parseWhole(given, least),
  };
}

/** A number that is unlimited unless given; the reference has a limit. */
export function unlimited(referenceDefault: number, help: string): Flag<number | undefined> {
  return {
    value: "number",
    default: undefined,
    referenceDefault,
    defaultText: "no limit",
    help,
    parse(given) {
      const value = parseNumber(given);
      if (value >= 0) return value === 0 ? undefined : value;
      throw new FlagValueError("write a number from 0 on; 0 means no limit");
    },
  };
}

/** What is known of one feature gate. */
export interface Gate {
  readonly default: boolean;
  /** Locked gates take their default only. */
  readonly locked?: boolean;
  /** What it switches. */
  readonly help: string;
}

/**
 * Gates of the library of API servers and of logging, which the reference's sidecars take as they are linked with it; they have no effect
 * on a sidecar there either, but for AllAlpha and AllBeta. Source: k8s.io/apiserver pkg/features, k8s.io/component-base, 1.32.
 */
const libraryGates: ReadonlySet<string> = new Set([
  "AllAlpha",
  "AllBeta",
  "APIResponseCompression",
  "APIServerIdentity",
  "APIServerTracing",
  "APIServingWithRoutine",
  "AggregatedDiscoveryRemoveBetaType",
  "AllowParsingUserUIDFromCertAuth",
  "AllowUnsafeMalformedObjectDeletion",
  "AnonymousAuthConfigurableEndpoints",
  "AuthorizeWithSelectors",
  "BtreeWatchCache",
  "CBORServingAndStorage",
  "ConcurrentWatchObjectDecode",
  "ConsistentListFromCache",
  "ContextualLogging",
  "CoordinatedLeaderElection",
  "KMSv1",
  "LoggingAlphaOptions",
  "LoggingBetaOptions",
  "MutatingAdmissionPolicy",
  "OpenAPIEnums",
  "RemoteRequestHeaderUID",
  "ResilientWatchCacheInitialization",
  "RetryGenerateName",
  "SeparateCacheWatchRPC",
  "StorageVersionAPI",
  "StorageVersionHash",
  "StrictCostEnforcementForVAP",
  "StrictCostEnforcementForWebhooks",
  "StructuredAuthenticationConfiguration",
  "StructuredAuthorizationConfiguration",
  "UnauthenticatedHTTP2DOSMitigation",
  "WatchBookmark",
  "WatchCacheInitializationPostStartHook",
  "WatchFromStorageWithoutResourceVersion",
  "WatchList",
  "WatchListClient",
]);

/** `--feature-gates A=true,B=false`. */
export function gates<G extends string>(
  known: Readonly<Record<G, Gate>>,
): Flag<Record<G, boolean>> & { readonly known: Readonly<Record<G, Gate>> } {
  const names = Object.keys(known) as G[];
  const defaults = Object.fromEntries(names.map((name) => [name, known[name].default])) as Record<G, boolean>;
  return {
    known,
    value: "A=true,B=false",
    default: defaults,
    defaultText: "",
    help: `feature gates: ${names.map((name) => `${name}=${known[name].default} (${known[name].help})`).join(", ")}; gates of the API server library are taken and have no effect`,
    parse(given) {
      let asked: Record<string, boolean>;
      try {
        asked = parseFeatureGates(given);
      } catch (error) {
        if (error instanceof FeatureGateError) throw new FlagValueError(error.message);
        throw error;
      }
      const own = Object.entries(asked).filter(
        ([name]) => Object.hasOwn(known, name) || !libraryGates.has(name),
      );
      for (const [name, value] of own) {
        const gate = (known as Readonly<Record<string, Gate>>)[name];
        if (gate === undefined) {
          throw new FlagValueError(`unknown feature gate ${name}; known are ${names.join(", ")}`);
        }
        if (gate.locked === true && value !== gate.default) {
          throw new FlagValueError(`feature gate ${name} is locked to ${gate.default}: remove it`);
        }
      }
      return { ...defaults, ...Object.fromEntries(own) };
    },
  };
}

/** `a:b,c:d`, as the reference's `--leader-election-labels`. */
export function labels(help: string): Flag<Readonly<Record<string, string>>> {
  return {
    value: "key:value,…",
    default: {},
    defaultText: "",
    help,
    parse(given) {
      const pairs = given.split(",").map((part) => part.trim().split(":"));
      for (const pair of pairs) {
        if (pair.length !== 2 || pair[0] === "") throw new FlagValueError("write key:value,key:value");
      }
      return Object.fromEntries(pairs) as Record<string, string>;
    },
  };
}

/** A deprecated flag, which is ignored. */
export function obsolete(
  kind: "text" | "switch",
  why: string,
): Flag<undefined> & { readonly deprecated: string } {
  return {
    value: kind === "switch" ? undefined : "value",
    default: undefined,
    defaultText: "",
    help: `(deprecated) ${why}`,
    deprecated: why,
    parse(given) {
      if (kind === "switch") parseBoolean(given);
      return undefined;
    },
  };
}
