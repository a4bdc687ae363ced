package plan

// Ranking is a leaderboard: one sorted set {prefix}ranking of members member:0 to
// member:{Members-1}, the higher score the better. A member's rank is 1 + the number of members
// with a better score, so that equal scores share a rank, unlike ZREVRANK.
//
//   - set: ZADD of a random score
//   - get: ZSCORE of a member, then ZCOUNT of the better scores
//   - find: ZSCOREs of FindCount members at once, then their ZCOUNTs at once
//   - findByOrder: ZREVRANGE WITHSCORES of FindCount members from a random rank on, then ZCOUNT of
//     the scores that are better than the first one's
//
// Members are drawn by the keyspace's distribution. All members exist before the start, with random
// scores.
type Ranking struct {
	Members int64 `json:"members"` // 1 to 1e9
	// scores are integers in [0, ScoreSpread), drawn uniformly; 1 to 2^53
	ScoreSpread int64          `json:"scoreSpread"`
	FindCount   int            `json:"findCount"` // 1 to 1000, not above Members
	Weights     RankingWeights `json:"weights"`   // an operation of weight 0 is not used
}

// RankingWeights are the operations' weights.
type RankingWeights struct {
	Set         int `json:"set,omitempty"`
	Get         int `json:"get,omitempty"`
	Find        int `json:"find,omitempty"`
	FindByOrder int `json:"findByOrder,omitempty"`
}

func (k *Ranking) check(*Keyspace) string {
	if k.Members < 1 || k.ScoreSpread < 1 || k.FindCount < 1 || k.Weights == (RankingWeights{}) {
		return "members, scoreSpread, findCount and weights: must be above 0"
	}
	return ""
}

func (k *Ranking) operations() []Operation {
	_, operations := k.Kinds()
	return operations
}

// The kinds of operation, in the order of the records.
const (
	RankingSet = iota
	RankingGet
	RankingFind
	RankingFindByOrder
)

// Kinds returns the kinds of operation with a weight, and the operations in the same order.
func (k *Ranking) Kinds() ([]int, []Operation) {
	all := []Operation{
		RankingSet:         {Name: "set", Weight: k.Weights.Set},
		RankingGet:         {Name: "get", Weight: k.Weights.Get, ReadOnly: true},
		RankingFind:        {Name: "find", Weight: k.Weights.Find, ReadOnly: true},
		RankingFindByOrder: {Name: "findByOrder", Weight: k.Weights.FindByOrder, ReadOnly: true},
	}
	var kinds []int
	var operations []Operation
	for kind, o := range all {
		if o.Weight > 0 {
			kinds, operations = append(kinds, kind), append(operations, o)
		}
	}
	return kinds, operations
}

func (k *Ranking) tallies() []string {
	return nil
}
