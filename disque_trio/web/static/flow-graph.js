// The members of a flow in layers, parents to the left; what is drawn where.

const APART = 12; // members of one task in one layer that are drawn one by one; more are one box

// Boxes with { n, layer, row, task, members }, where members are places, and lines with { from, to,
// many }: how many members of the box `to` wait for members of the box `from`.
export function graph(members) {
  const layers = layersOf(members);
  const boxes = boxesOf(members, layers);
  const boxOf = [];
  for (const box of boxes) for (const place of box.members) boxOf[place] = box.n;
  const lines = linesOf(members, boxOf);
  const columns = ordered(boxes, lines);
  return { boxes, lines, columns };
}

// As the server sends them: the first and the last of those that follow each other.
function* parents({ after }) {
  for (const [first, last] of after) for (let place = first; place <= last; place += 1) yield place;
}

// A member is one layer to the right of its last parent. Parents have smaller places.
function layersOf(members) {
  const layers = [];
  for (const [n, member] of members.entries()) {
    let layer = 0;
    for (const place of parents(member)) layer = Math.max(layer, layers[place] + 1);
    layers[n] = layer;
  }
  return layers;
}

function boxesOf(members, layers) {
  const groups = new Map();
  for (const [n, { task }] of members.entries()) {
    const key = `${layers[n]} ${task}`;
    if (!groups.has(key)) groups.set(key, { layer: layers[n], task, members: [] });
    groups.get(key).members.push(n);
  }
  const parted = ({ members: places, ...group }) =>
    places.length > APART ? [{ ...group, members: places }] : places.map((place) => ({ ...group, members: [place] }));
  return [...groups.values()].flatMap(parted).map((box, n) => ({ ...box, n }));
}

function linesOf(members, boxOf) {
  const lines = new Map();
  for (const [n, member] of members.entries()) {
    const to = boxOf[n];
    for (const from of new Set([...parents(member)].map((place) => boxOf[place]))) {
      const key = `${from} ${to}`;
      if (!lines.has(key)) lines.set(key, { from, to, many: 0 });
      lines.get(key).many += 1;
    }
  }
  return [...lines.values()];
}

// Each box near those that it is linked to: once by its parents, once by its children.
function ordered(boxes, lines) {
  const columns = [];
  for (const box of boxes) (columns[box.layer] ??= []).push(box);
  const place = () => columns.forEach((column) => column.forEach((box, row) => (box.row = row - column.length / 2)));
  place();
  for (const [own, other] of [["to", "from"], ["from", "to"]]) {
    for (const column of own === "to" ? columns : [...columns].reverse()) {
      const near = new Map(column.map((box) => [box, middle(lines.filter((line) => line[own] === box.n).map((line) => boxes[line[other]].row), box.row)]));
      column.sort((a, b) => near.get(a) - near.get(b));
      column.forEach((box, row) => (box.row = row - column.length / 2));
    }
  }
  return columns;
}

const middle = (rows, without) => (rows.length ? rows.reduce((sum, row) => sum + row, 0) / rows.length : without);
