// Text from outside, made fit to be read.

// Signs that are not seen, or that turn the order of others round, as their numbers.
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

export function visible(text) {
  return String(text).replace(UNSEEN, (sign) => {
    const code = sign.charCodeAt(0);
    return code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
  });
}

export const hex = (code, digits) => code.toString(16).padStart(digits, "0");
