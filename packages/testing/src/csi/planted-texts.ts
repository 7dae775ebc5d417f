/** Messages with a text at every place where the protocol has room for one; over the descriptors, so that no RPC is forgotten. */
import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@longshore/csi";
import { file_csi } from "@longshore/csi/protocol";
import { type DescService, isSecretField, ScalarType } from "@longshore/csi/transport";

type DescField = DescMessage["fields"][number];
type DescMethod = DescService["methods"][number];

/** Every RPC of CSI. */
export const csiMethods: readonly DescMethod[] = file_csi.services.flatMap(({ methods }) => methods);

/** The RPCs whose requests have secrets. */
export const methodsWithSecrets = csiMethods.filter(({ input }) => input.fields.some(isSecretField));

/** A request of the method with these secrets in every marked field. */
export function requestWithSecrets(
  { input }: Pick<DescMethod, "input">,
  secrets: Readonly<Record<string, string>>,
): MessageShape<DescMessage> {
  const fields = input.fields.filter(isSecretField).map(({ localName }) => [localName, { ...secrets }]);
  return create(input, Object.fromEntries(fields) as MessageInitShape<DescMessage>);
}

/** One message with the text at one place. */
export interface PlantedText {
  /** e.g. `volume.volume_context`. */
  readonly path: string;
  /** Adds the text to a message that is filled otherwise. */
  plantIn(message: MessageShape<DescMessage>): MessageShape<DescMessage>;
}

type Fields = Record<string, unknown>;
type Planter = (message: Fields) => void;

/** All places of a text in messages of this kind. */
export function placesOfText(schema: DescMessage, text: string): readonly PlantedText[] {
  return plantersOf(schema, text, []).map(([path, plant]) => ({
    path,
    plantIn(message) {
      plant(message as unknown as Fields);
      return message;
    },
  }));
}

function plantersOf(schema: DescMessage, text: string, above: readonly string[]): [string, Planter][] {
  if (schema.typeName.startsWith("google.protobuf.") || above.length > 4) return [];
  return schema.fields.flatMap((field): [string, Planter][] => {
    const path = [...above, field.name];
    const at = path.join(".");
    if (field.scalar === ScalarType.STRING && field.fieldKind === "scalar") {
      return [[at, (message) => set(field, message, text)]];
    }
    if (field.scalar === ScalarType.STRING && field.fieldKind === "list") {
      return [[at, (message) => set(field, message, [text])]];
    }
    if (field.fieldKind === "map") {
      return [
        [at, (message) => set(field, message, { ...(message[field.localName] as object), planted: text })],
        [
          `${at} (key)`,
          (message) => set(field, message, { ...(message[field.localName] as object), [text]: "x" }),
        ],
      ];
    }
    const nested = field.message;
    if (nested === undefined) return [];
    return plantersOf(nested, text, path).map(([inner, plant]) => [inner, within(field, nested, plant)]);
  });
}

/** Plants in the message of a field: in one that is there, or in a new one. */
function within(field: DescField, nested: DescMessage, plant: Planter): Planter {
  return (message) => {
    const present = field.oneof === undefined ? message[field.localName] : undefined;
    const isList = field.fieldKind === "list";
    const first = isList ? (present as unknown[])[0] : present;
    const inner = (first ?? create(nested)) as Fields;
    plant(inner);
    set(field, message, isList ? [inner, ...((present as unknown[]) ?? []).slice(1)] : inner);
  };
}

function set(field: DescField, message: Fields, value: unknown): void {
  if (field.oneof === undefined) message[field.localName] = value;
  else message[field.oneof.localName] = { case: field.localName, value };
}
