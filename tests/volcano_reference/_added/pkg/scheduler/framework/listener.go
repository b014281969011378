package framework

import "volcano.sh/volcano/pkg/scheduler/api"

// Listener is told what happens in a session.
type Listener interface {
	// Operation is told of every step of a statement or of the session itself, undone ones included.
	Operation(name string, task *api.TaskInfo)
	// Turn is told which task an action looks at.
	Turn(task *api.TaskInfo)
}

// Listening is whom to tell; there may be nobody.
var Listening Listener

func tell(name string, task *api.TaskInfo) {
	if Listening != nil {
		Listening.Operation(name, task)
	}
}

func tellTurn(task *api.TaskInfo) {
	if Listening != nil {
		Listening.Turn(task)
	}
}

// Opened returns a plugin of the session by its name, or nil.
func (ssn *Session) Opened(name string) Plugin { return ssn.plugins[name] }
