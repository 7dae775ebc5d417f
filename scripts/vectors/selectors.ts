/** Vectors of selectors and of the rules for names and labels. */

import {
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type LabelSelector,
  type Labels,
  labelSelectorMatcher,
  labelSelectorMatches,
  labelValueErrors,
  type NodeSelector,
  nodeSelectorMatches,
  parseFieldSelector,
  parseLabelSelector,
  qualifiedNameErrors,
} from "@longshore/kube";
import type { VectorGroup } from "./types.ts";

export const selectorVectors: VectorGroup = {
  name: "selectors",
  handlers: {
    labelSelectorParse: ({ selector }: { selector: string }) => {
      const matcher = parseLabelSelector(selector);
      return {
        canonical: matcher.toString(),
        requirements: matcher.requirements,
        selectable: true,
        empty: matcher.isEmpty,
      };
    },
    labelSelectorMatches: ({ selector, labels }: { selector: string; labels: Labels }) =>
      parseLabelSelector(selector).matches(labels),
    labelSelectorObject: ({ selector, labels }: { selector: LabelSelector | null; labels: Labels }) => ({
      canonical: selector === null ? "" : labelSelectorMatcher(selector).toString(),
      matches: labelSelectorMatches(selector, labels),
    }),
    fieldSelector: ({ selector, fields }: { selector: string; fields: Readonly<Record<string, string>> }) => {
      const matcher = parseFieldSelector(selector);
      return {
        canonical: matcher.toString(),
        requirements: matcher.requirements,
        empty: matcher.isEmpty,
        matches: matcher.matches(fields),
      };
    },
    nodeSelectorMatches: (input: { node: { name: string; labels?: Labels }; nodeSelector: NodeSelector }) =>
      nodeSelectorMatches({ metadata: input.node }, input.nodeSelector),
    validate: ({ text }: { text: string }) => ({
      dns1123Label: dns1123LabelErrors(text),
      dns1123Subdomain: dns1123SubdomainErrors(text),
      dns1035Label: dns1035LabelErrors(text),
      qualifiedName: qualifiedNameErrors(text),
      labelValue: labelValueErrors(text),
    }),
  },
};
