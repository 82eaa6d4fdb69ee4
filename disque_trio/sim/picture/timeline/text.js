// Text from outside, made fit to be read.

// Characters that are not seen, that turn the order of others round, or that are stacked on one
// character, as their numbers: the same ones as terminal/escapes.py.
const UNSEEN =
  /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0\ufe00-\ufe0e\u{e0100}-\u{e01ef}]|(?<=[\p{Mn}\p{Me}]{4})[\p{Mn}\p{Me}]/gu;

export function visible(text) {
  return String(text).replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0);
    if (code > 0xffff) return `\\U${hex(code, 8)}`;
    if (code >= 0xdc80 && code <= 0xdcff) return `\\x${hex(code - 0xdc00, 2)}`; // no UTF-8
    return code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
  });
}

export const hex = (code, digits) => code.toString(16).padStart(digits, "0");
