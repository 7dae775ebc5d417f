/** `longshore translate`: wires files and standard streams to the manifest conversion. */

import {
  type ClaimSizes,
  type ConversionNote,
  convertManifests,
  ManifestInputError,
  type ManifestOptions,
  type ManifestWriter,
  type OutputFormat,
} from "@longshore/migration";
import { errorChain } from "@longshore/runtime/basics";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type FlagsOf, inFlags } from "../field-flags.ts";
import { manifestInputs } from "../manifest-inputs.ts";
import { claimSizes } from "./claim-size-flag.ts";

/** What the command reads and writes; the process's own streams unless a test says otherwise. */
export interface TranslateStreams {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

interface TranslateFlags {
  readonly filename: readonly string[];
  readonly to: "csi" | "in-tree";
  readonly output?: OutputFormat;
  readonly explain?: boolean;
  readonly keepProvisioner?: boolean;
  readonly inline: "report" | "claim";
  readonly claimSize?: ClaimSizes;
}

/**
 * Adds the command `translate` to `program`. It sets the exit code: 0 done, 1 some object could not be
 * translated, 2 wrong usage or unreadable input.
 */
export function registerTranslateCommand(program: Command, streams: TranslateStreams = process): void {
  program
    .command("translate")
    .description("translate volumes and storage classes in manifests between in-tree and CSI form")
    .requiredOption(
      "-f, --filename <file>",
      "manifests to read: a file, a directory, or - for standard input (YAML, JSON or JSON lines, also by gzip); may be given several times",
      (file: string, before: readonly string[] | undefined) => [...(before ?? []), file],
    )
    .option("--to <form>", "csi or in-tree", oneOf("csi", "in-tree"), "csi")
    .addOption(
      new Option(
        "-o, --output <form>",
        "form of what is printed, json being one List; that of the input when not given",
      ).choices(["yaml", "json", "jsonl"]),
    )
    .addOption(new Option("--json", "the same as -o json").implies({ output: "json" }))
    .option("--explain", "say on standard error, field by field, what became what and why")
    .option("--keep-provisioner", "leave storage classes their provisioner")
    .option(
      "--inline <how>",
      "in-tree volumes in pods: report them, or make each a claim",
      oneOf("report", "claim"),
      "report",
    )
    .option(
      "--claim-size <[volume=]size>",
      "with --inline=claim: the size of the disks, or of that of one volume, such as 10Gi or data=20Gi; may be given several times",
      claimSizes,
    )
    .exitOverride((error) => {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      // Wrong usage has exit code 2 for this command, in every handler.
      error.exitCode = process.exitCode;
      throw error;
    })
    .action(async (flags: TranslateFlags) => {
      process.exitCode = await translate(flags, streams);
    });
}

function oneOf(...choices: readonly string[]): (value: string) => string {
  return (value) => {
    if (choices.includes(value)) return value;
    throw new InvalidArgumentError(`Use one of: ${choices.join(", ")}.`);
  };
}

async function translate(flags: TranslateFlags, streams: TranslateStreams): Promise<number> {
  const note = ({ kind, object, text }: ConversionNote) => {
    streams.stderr.write(`${prefixOf[kind]}${object}: ${inFlags(text, conversionFields)}\n`);
  };
  try {
    const inputs = await manifestInputs(flags.filename, streams.stdin);
    const totals = await convertManifests(inputs, writerTo(streams.stdout), {
      to: flags.to,
      output: flags.output,
      explain: flags.explain === true,
      keepProvisioner: flags.keepProvisioner === true,
      inline: flags.inline,
      claimSizes: flags.claimSize,
      note,
    });
    return totals.failed === 0 ? 0 : 1;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The reader of our output has closed it.
    if (code === "EPIPE") return 0;
    const text =
      error instanceof ManifestInputError
        ? errorChain(error)
        : `cannot translate: ${message}; check the file and where the output goes`;
    streams.stderr.write(`error: ${text}\n`);
    return 2;
  }
}

/** The flags of options that notes name. */
const conversionFields = { inline: "--inline" } satisfies FlagsOf<ManifestOptions>;

const prefixOf = { failed: "error: ", dropped: "warning: ", inline: "", explain: "" } as const;

/** Writes to a stream and waits until it has room again, or has failed. */
function writerTo(stream: NodeJS.WritableStream): ManifestWriter {
  stream.on("error", () => {}); // The write that failed reports it, too.
  return {
    write: (bytes) =>
      new Promise<void>((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
  };
}
