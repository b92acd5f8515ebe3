// The search puts chapters and guides before pages of reference, where every word stands somewhere.
window.Scorer = {
  score: ([docname, , , , score]) => score + (/\/0\d-/.test(docname) ? 8 : 0) - (/glossary|notation|api|bibliography/.test(docname) ? 12 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
