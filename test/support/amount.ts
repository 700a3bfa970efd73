/** How much a test does that does the same again and again: `npm run test:full` has the time for `many`. */
export const amount = (few: number, many: number): number =>
  process.env.PORTICO_TEST_FULL === 'yes' ? many : few;
