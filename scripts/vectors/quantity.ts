/** Vectors of quantities. */

import { formatBytes, parseQuantity, type Quantity, type QuantityFormat, quantityOf } from "@longshore/kube";
import type { VectorGroup } from "./types.ts";

export const quantityVectors: VectorGroup = {
  name: "quantity",
  handlers: {
    parse: ({ text }: { text: string }) => shown(parseQuantity(text)),
    pair: (input: { a: string; b: string }) => {
      const a = parseQuantity(input.a);
      const b = parseQuantity(input.b);
      return { cmp: a.compare(b), equal: a.equals(b), add: shown(a.add(b)), sub: shown(a.sub(b)) };
    },
    scale: ({ text, scale }: { text: string; scale: number }) => {
      const quantity = parseQuantity(text);
      const rounded = quantity.roundUp(scale);
      return {
        scaledValue: quantity.scaledValue(scale).toString(),
        roundUp: rounded.quantity.toString(),
        roundUpExact: rounded.exact,
      };
    },
    fromInt64: ({ value, format }: { value: string; format: QuantityFormat }) =>
      quantityOf(BigInt(value), format).toString(),
    fromBytes: ({ bytes }: { bytes: string }) => formatBytes(BigInt(bytes)),
  },
};

function shown(quantity: Quantity): object {
  return {
    canonical: quantity.toString(),
    value: quantity.value().toString(),
    milliValue: quantity.milliValue().toString(),
    asInt64: quantity.asInt64()?.toString() ?? null,
    decimal: quantity.toDecimal(),
    format: quantity.format,
    sign: quantity.sign(),
    isZero: quantity.isZero(),
  };
}
