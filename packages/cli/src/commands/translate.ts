/** `longshore translate`: wires files and standard streams to the manifest conversion. */

import { createReadStream } from "node:fs";
import {
  type ConversionNote,
  convertManifests,
  type ManifestWriter,
  type OutputFormat,
} from "@longshore/migration";
import { type Command, InvalidArgumentError } from "commander";

/** What the command reads and writes; the process's own streams unless a test says otherwise. */
export interface TranslateStreams {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

interface TranslateFlags {
  readonly filename: string;
  readonly to: "csi" | "in-tree";
  readonly output?: OutputFormat;
  readonly explain?: boolean;
  readonly keepProvisioner?: boolean;
  readonly inline: "report" | "claim";
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
      "manifests to read, - for standard input (YAML, JSON or JSON lines)",
    )
    .option("--to <form>", "csi or in-tree", oneOf("csi", "in-tree"), "csi")
    .option(
      "-o, --output <format>",
      "yaml, json (one List) or jsonl; that of the input when not given",
      oneOf("yaml", "json", "jsonl"),
    )
    .option("--explain", "tell on standard error, field by field, what became what and why")
    .option("--keep-provisioner", "leave storage classes their provisioner")
    .option(
      "--inline <how>",
      "in-tree volumes in pods: report them, or make each a claim",
      oneOf("report", "claim"),
      "report",
    )
    .exitOverride((error) => {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      // Wrong usage is 2 for this command, whoever catches it.
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
    streams.stderr.write(`${kind === "failed" ? "error: " : ""}${object}: ${text}\n`);
  };
  try {
    const totals = await convertManifests(inputOf(flags.filename, streams), writerTo(streams.stdout), {
      to: flags.to,
      output: flags.output,
      explain: flags.explain === true,
      keepProvisioner: flags.keepProvisioner === true,
      inline: flags.inline,
      note,
    });
    return totals.failed === 0 ? 0 : 1;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Whoever reads our output has seen enough.
    if (code === "EPIPE") return 0;
    streams.stderr.write(
      `error: cannot translate ${flags.filename}: ${message}; check the file and where the output goes\n`,
    );
    return 2;
  }
}

function inputOf(filename: string, streams: TranslateStreams): AsyncIterable<Uint8Array> {
  return filename === "-" ? streams.stdin : createReadStream(filename, { highWaterMark: 256 * 1024 });
}

/** Writes to a stream and waits until it has room again, or has failed. */
function writerTo(stream: NodeJS.WritableStream): ManifestWriter {
  stream.on("error", () => {}); // The write that failed tells it, too.
  return {
    write: (bytes) =>
      new Promise<void>((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
  };
}
