/** The flags of `longshore run apiserver` that say who may do what, named as kube-apiserver's own. */
import { type AuthorizationMode, authorizationModes, type RunApiServerOptions } from "@longshore/apiserver";
import type { Command } from "commander";

/** Values of the flags for authentication, authorization and limits. */
export interface AccessFlags {
  readonly anonymousAuth?: true;
  readonly tokenAuthFile?: string;
  readonly authorizationMode?: string;
  readonly disableAdmissionPlugins?: string;
  readonly maxRequestsInflight?: string;
  readonly maxMutatingRequestsInflight?: string;
}

/** Adds the flags to a command. */
export function addAccessFlags(command: Command): Command {
  return command
    .option("--anonymous-auth", "let requests without credentials in, as system:anonymous")
    .option("--token-auth-file <file>", 'further tokens, a line each: token,user,uid,"group1,group2"')
    .option(
      "--authorization-mode <modes>",
      `who decides, in order: ${authorizationModes.join(", ")}`,
      "Node,RBAC",
    )
    .option("--disable-admission-plugins <plugins>", "ServiceAccount: pods need no account and get no token")
    .option("--max-requests-inflight <count>", "most reading requests at a time, 0 for any", "400")
    .option("--max-mutating-requests-inflight <count>", "most changing requests at a time, 0 for any", "200");
}

/** What the flags mean for the server, or one sentence on which cannot be. */
export function accessOptions(flags: AccessFlags): Partial<RunApiServerOptions> | string {
  const modes = (flags.authorizationMode ?? "Node,RBAC").split(",").map((mode) => mode.trim());
  const unknown = modes.find((mode) => !authorizationModes.some((known) => known === mode));
  if (unknown !== undefined) {
    return `--authorization-mode: "${unknown}" is not one of ${authorizationModes.join(", ")}`;
  }
  const plugins = (flags.disableAdmissionPlugins ?? "").split(",").filter((plugin) => plugin !== "");
  const other = plugins.find((plugin) => plugin !== "ServiceAccount");
  if (other !== undefined) {
    return `--disable-admission-plugins: "${other}" cannot be disabled; ServiceAccount can`;
  }
  const reads = countOf(flags.maxRequestsInflight ?? "400");
  const writes = countOf(flags.maxMutatingRequestsInflight ?? "200");
  if (reads === undefined) return `--max-requests-inflight: "${flags.maxRequestsInflight}" is not a count`;
  if (writes === undefined) {
    return `--max-mutating-requests-inflight: "${flags.maxMutatingRequestsInflight}" is not a count`;
  }
  return {
    authorizationModes: modes as AuthorizationMode[],
    limits: { readsMax: reads, writesMax: writes },
    ...(flags.anonymousAuth === true ? { anonymousAuth: true } : {}),
    ...(flags.tokenAuthFile === undefined ? {} : { tokenAuthFile: flags.tokenAuthFile }),
    ...(plugins.length === 0 ? {} : { serviceAccounts: false }),
  };
}

function countOf(text: string): number | undefined {
  return /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}
