/** `longshore assess` and `longshore explain`: wires a cluster or a dump of one to the assessment. */
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type {
  AssessOptions,
  Inventory,
  ReportForm,
  Suppression,
  TemplatePath,
  Verdict,
} from "@longshore/migration";
import { errorChain } from "@longshore/runtime/basics";
import type { Command } from "commander";
import { withCluster } from "../cluster-access.ts";
import { interruptible, reportFailure, UsageError } from "../exit.ts";
import { repeated, withForms } from "../flags.ts";
import { dumpInputs } from "../manifest-inputs.ts";

/** What the commands read and write; the process's own streams unless a test says otherwise. */
export interface AssessStreams {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean };
}

interface AssessFlags {
  readonly filename?: readonly string[];
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly clusterVersion?: string;
  readonly targetVersion?: string;
  readonly checkSecrets?: true;
  readonly output?: readonly string[];
  readonly json?: true;
  readonly printRbac?: true;
  readonly printSchema?: true;
  readonly suppressions?: string;
  readonly diff?: string;
  readonly templatePath?: readonly string[];
  readonly watch?: true;
  readonly metricsAddress?: string;
}

/** What a script reads off the exit code. */
const verdictCodes: Readonly<Record<Verdict, number>> = {
  READY: 0,
  WARNINGS: 1,
  "NOT READY": 2,
  "CANNOT DETERMINE": 3,
};

/** Adds the commands `assess` and `explain` to `program`. */
export function registerAssessCommands(program: Command, streams: AssessStreams = process): void {
  program
    .command("assess")
    .description(
      "what of a cluster, or of a dump, depends on in-tree volume plugins, what breaks at an upgrade, and why",
    )
    .option(
      "-f, --filename <file>",
      "a dump instead of a cluster: a file, a tree of files, or - for standard input (YAML, JSON, JSON lines, also by gzip); may be given several times",
      repeated,
    )
    .option("--kubeconfig <file>", "the cluster; default $KUBECONFIG, then the account of the pod")
    .option("--context <name>", "of the kubeconfig; default its current one")
    .option("--target-version <1.N>", "judge the cluster for this version of Kubernetes as well")
    .option("--cluster-version <1.N>", "the version that the cluster has; default that of its newest kubelet")
    .option("--check-secrets", "look for the Secrets that volumes refer to; takes the right to list Secrets")
    .option(
      "-o, --output <form[=file]>",
      "table, wide, json, yaml, html, markdown, csv, sarif, junit or prometheus, to a file or to standard output; may be given several times",
      repeated,
    )
    .option("--json", "the same as -o json")
    .option("--suppressions <file>", "findings that do not count, each with a reason and an end (YAML)")
    .option("--diff <report.json>", "say what is new and what is gone since an earlier report")
    .option(
      "--template-path <group/version/plural:path>",
      "custom resources that hold templates of pods, as batch.volcano.sh/v1alpha1/jobs:.spec.tasks[*].template; may be given several times",
      repeated,
    )
    .option("--watch", "follow the cluster, and say what has changed, until Ctrl-C")
    .option(
      "--metrics-address <address>",
      "with --watch: serve the figures of the assessment there under /metrics, as 127.0.0.1:9808; a port alone is one of this machine",
    )
    .option("--print-rbac", "print the ClusterRole that an assessment needs, and end")
    .option("--print-schema", "print the JSON Schema of the JSON form, and end")
    .addHelpText(
      "after",
      "\nExit codes: 0 ready, 1 warnings, 2 not ready, 3 cannot determine, also for wrong usage and a cluster that cannot be reached.\n" +
        "With --target-version the heavier of the two verdicts counts.",
    )
    .exitOverride((error) => {
      // Without a verdict the code is that of none.
      if (error.exitCode !== 0) error.exitCode = verdictCodes["CANNOT DETERMINE"];
      throw error;
    })
    .action(async (flags: AssessFlags) => {
      process.exitCode = await assessed(flags, streams);
    });
  const explain = program
    .command("explain")
    .description(
      "what a code of `longshore assess` means, why it matters and what to do; without a code, all of them",
    )
    .argument("[code]", "such as LS1103")
    .action(async (code: string | undefined, { output }: { readonly output: "text" | "json" }) => {
      streams.stdout.write(await explained(code, output));
    });
  withForms(explain, ["text", "json"]);
}

/** What is printed, and where: the table, unless something else is asked for. */
function formsOf({ output = [], json }: AssessFlags): readonly string[] {
  const asked = [...output, ...(json === true ? ["json"] : [])];
  return asked.length === 0 ? ["table"] : asked;
}

async function assessed(flags: AssessFlags, streams: AssessStreams): Promise<number> {
  try {
    return await interruptible((signal) => run(flags, streams, signal));
  } catch (error) {
    const code = reportFailure(error);
    return code === 130 ? code : verdictCodes["CANNOT DETERMINE"];
  }
}

async function run(flags: AssessFlags, streams: AssessStreams, signal: AbortSignal): Promise<number> {
  const { assess, assessmentRole, assessmentSchema, diffOf, EarlierReportError, renderReport } = await import(
    "@longshore/migration"
  );
  if (flags.printSchema === true) {
    streams.stdout.write(`${JSON.stringify(assessmentSchema, undefined, 2)}\n`);
    return 0;
  }
  const templates = await templatesOf(flags.templatePath);
  if (flags.printRbac === true) {
    const { dump } = await import("js-yaml");
    const role = { checkSecrets: flags.checkSecrets === true, templates, watch: flags.watch === true };
    streams.stdout.write(dump(assessmentRole(role)));
    return 0;
  }
  const outputs = await outputsOf(formsOf(flags));
  const options = { ...(await versionsOf(flags)), suppressions: await suppressionsOf(flags.suppressions) };
  if (flags.watch === true) {
    const { watchAssessment } = await import("./watch-assessment.ts");
    return await watchAssessment(flags, { ...options, templates }, streams, signal);
  }
  if (flags.metricsAddress !== undefined) throw new UsageError("--metrics-address: give it with --watch");
  // Before the cluster is read: a file that is not there ends the run at once.
  const earlier = flags.diff === undefined ? undefined : await textOf("--diff", flags.diff);
  const inventory =
    flags.filename === undefined
      ? await fromCluster(flags, templates, streams, signal)
      : await fromDump(flags, templates, flags.filename, streams);
  const judged = assess(inventory, options);
  const assessment =
    earlier === undefined
      ? judged
      : {
          ...judged,
          diff: await usable("--diff", flags.diff, EarlierReportError, () =>
            diffOf(judged.findings, earlier),
          ),
        };
  for (const { form, file } of outputs) {
    const text = renderReport(form, assessment);
    if (file === undefined) streams.stdout.write(text);
    else await writeFile(file, text);
  }
  const { verdict, targetVerdict = verdict } = assessment;
  return heavier(verdictCodes[verdict], verdictCodes[targetVerdict]);
}

async function templatesOf(texts: readonly string[] = []): Promise<readonly TemplatePath[]> {
  const { parseTemplatePath, TemplatePathError } = await import("@longshore/migration");
  return texts.map((text) => {
    try {
      return parseTemplatePath(text);
    } catch (error) {
      if (!(error instanceof TemplatePathError)) throw error;
      throw new UsageError(`--template-path: ${error.message}`);
    }
  });
}

async function suppressionsOf(file: string | undefined): Promise<readonly Suppression[]> {
  if (file === undefined) return [];
  const { parseSuppressions, SuppressionError } = await import("@longshore/migration");
  const text = await textOf("--suppressions", file);
  return usable("--suppressions", file, SuppressionError, () => parseSuppressions(text));
}

async function textOf(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`${flag}: cannot read ${file}: ${errorChain(error)}`);
  }
}

/** What is made of the file; what is wrong with that is wrong usage. */
async function usable<T>(
  flag: string,
  file: string | undefined,
  wrong: abstract new (...args: never[]) => Error,
  make: () => T,
): Promise<T> {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof wrong)) throw error;
    throw new UsageError(`${flag}: ${file}: ${error.message}`);
  }
}

/** An error weighs more than a gap: it is there whatever else is. */
function heavier(now: number, target: number): number {
  const notReady = verdictCodes["NOT READY"];
  return now === notReady || target === notReady ? notReady : Math.max(now, target);
}

async function outputsOf(
  outputs: readonly string[],
): Promise<readonly { readonly form: ReportForm; readonly file: string | undefined }[]> {
  const { reportForms } = await import("@longshore/migration");
  const parsed = outputs.map((output) => {
    const [, name = "", file] = /^([^=]*)(?:=(.*))?$/s.exec(output) ?? [];
    const form = reportForms.find((known) => known === name);
    if (form === undefined) {
      throw new UsageError(`--output: "${name}" is not one of ${reportForms.join(", ")}`);
    }
    if (file === "") throw new UsageError(`--output: "${output}" names no file; write ${name}=FILE`);
    return { form, file: file === undefined ? undefined : resolve(file) };
  });
  if (parsed.filter(({ file }) => file === undefined).length > 1) {
    throw new UsageError(
      "--output: only one form can go to standard output; give the others a file, as json=FILE",
    );
  }
  return parsed;
}

async function versionsOf({ clusterVersion, targetVersion }: AssessFlags): Promise<AssessOptions> {
  const clusterMinor = await minorOf("--cluster-version", clusterVersion);
  const targetMinor = await minorOf("--target-version", targetVersion);
  return {
    ...(clusterMinor === undefined ? {} : { clusterMinor }),
    ...(targetMinor === undefined ? {} : { targetMinor }),
  };
}

async function minorOf(flag: string, text: string | undefined): Promise<number | undefined> {
  if (text === undefined) return undefined;
  const { minorVersionOf } = await import("@longshore/migration");
  const minor = minorVersionOf(text);
  if (minor === undefined) throw new UsageError(`${flag}: "${text}" is not a version; write 1.32`);
  return minor;
}

/** On a terminal; a log of a job needs no progress. */
function progressOn({ stderr }: AssessStreams): { readonly onProgress?: (text: string) => void } {
  return stderr.isTTY === true ? { onProgress: (text) => stderr.write(`read ${text}\n`) } : {};
}

async function fromDump(
  flags: AssessFlags,
  templates: readonly TemplatePath[],
  filenames: readonly string[],
  streams: AssessStreams,
): Promise<Inventory> {
  if (flags.kubeconfig !== undefined || flags.context !== undefined) {
    throw new UsageError("--filename: give either a dump or a cluster (--kubeconfig, --context), not both");
  }
  const { collectManifests } = await import("@longshore/migration");
  const { systemClock } = await import("@longshore/runtime");
  const inputs = await dumpInputs(filenames, streams.stdin);
  return collectManifests(inputs, {
    now: systemClock.now(),
    checkSecrets: flags.checkSecrets === true,
    templates,
    ...progressOn(streams),
  });
}

async function fromCluster(
  flags: AssessFlags,
  templates: readonly TemplatePath[],
  streams: AssessStreams,
  signal: AbortSignal,
): Promise<Inventory> {
  const { collectCluster } = await import("@longshore/migration");
  return withCluster(flags, "or name a dump with --filename", (env) =>
    collectCluster(env, {
      signal,
      checkSecrets: flags.checkSecrets === true,
      templates,
      ...progressOn(streams),
    }),
  );
}

/** What codes mean, as text or as JSON: the one that is asked for, or a list of all. */
async function explained(code: string | undefined, output: "text" | "json"): Promise<string> {
  const { findingCode, findingCodes, findingLink } = await import("@longshore/migration");
  const asJson = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  if (code === undefined) {
    if (output === "json") {
      return asJson(findingCodes.map((entry) => ({ ...entry, link: findingLink(entry.code) })));
    }
    return findingCodes
      .map((entry) => `${entry.code}  ${entry.severity.padEnd(7)}  ${entry.title}\n`)
      .join("");
  }
  const entry = findingCode(code);
  if (entry === undefined) {
    throw new UsageError(`"${code}" is not a code of longshore assess; \`longshore explain\` lists them`);
  }
  const link = findingLink(entry.code);
  if (output === "json") return asJson({ ...entry, link });
  return `${entry.code} (${entry.severity}): ${entry.title}\n\n${entry.why}\n\nRemedy: ${entry.remedy}\n\nSee ${link}\n`;
}
