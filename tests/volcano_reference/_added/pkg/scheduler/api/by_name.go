package api

import "sort"

// TasksByName returns tasks in the order of namespace/name.
func TasksByName(tasks map[TaskID]*TaskInfo) []*TaskInfo {
	ordered := make([]*TaskInfo, 0, len(tasks))
	for _, task := range tasks {
		ordered = append(ordered, task)
	}
	sort.Slice(ordered, func(i, j int) bool { return ordered[i].FullName() < ordered[j].FullName() })
	return ordered
}

// FullName is the namespace/name of a task's pod.
func (ti *TaskInfo) FullName() string { return ti.Namespace + "/" + ti.Name }
